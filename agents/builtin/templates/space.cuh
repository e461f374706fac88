// A rectangular index space, and the stride of every operand along each of its dimensions (0: repeats).
struct Space {
  int rank;
  int64_t extent[RANK];
  int64_t stride[OPERANDS][RANK];
  int64_t inner[OPERANDS];  // strides of the dimension that threads walk along
};

[[maybe_unused]] static Space empty_space() {
  Space s = {};
  s.rank = RANK;
  for (int d = 0; d < RANK; ++d) s.extent[d] = 1;
  return s;
}

// Gives the space the extents that `t`, aligned to the right, has where they are not 1; the bits of
// `skip` are dimensions that it does not have.
[[maybe_unused]] static void widen(Space& s, const stitch_tensor& t, unsigned skip = 0) {
  for (int d = RANK - 1, j = t.ndim - 1; d >= 0 && j >= 0; --d) {
    if (skip >> d & 1) continue;
    if (s.extent[d] == 1) s.extent[d] = t.shape[j];
    --j;
  }
}

// Strides of an operand that broadcasts from the right; the bits of `skip` as above.
[[maybe_unused]] static bool place(Space& s, int operand, const stitch_tensor& t, unsigned skip = 0) {
  int j = t.ndim - 1;
  for (int d = RANK - 1; d >= 0; --d) {
    s.stride[operand][d] = 0;
    if ((skip >> d & 1) || j < 0) continue;
    if (t.shape[j] != 1 && t.shape[j] != s.extent[d]) return false;
    if (t.shape[j] != 1) s.stride[operand][d] = t.strides[j];
    --j;
  }
  return j < 0;
}

[[maybe_unused]] static int64_t points(const Space& s, int first, int count) {
  int64_t n = 1;
  for (int d = first; d < first + count; ++d) n *= s.extent[d];
  return n;
}

// Strides of a contiguous operand with as many elements as the space in another shape.
[[maybe_unused]] static bool place_reshaped(Space& s, int operand, const stitch_tensor& t) {
  int64_t step = 1;
  for (int j = t.ndim - 1; j >= 0; --j) {
    if (t.shape[j] != 1 && t.strides[j] != step && t.numel > 0) return false;
    step *= t.shape[j];
  }
  step = 1;
  for (int d = RANK - 1; d >= 0; --d) {
    s.stride[operand][d] = step;
    step *= s.extent[d];
  }
  return t.numel == step;
}

// Strides of an operand of one dimension, which lies along the space's dimension `channel`.
[[maybe_unused]] static bool place_channel(Space& s, int operand, const stitch_tensor& t, int channel) {
  for (int d = 0; d < RANK; ++d) s.stride[operand][d] = 0;
  if (channel >= RANK || (t.shape[0] != 1 && t.shape[0] != s.extent[channel])) return false;
  s.stride[operand][channel] = t.shape[0] == 1 ? 0 : t.strides[0];
  return true;
}

[[maybe_unused]] static void drop_dimension(Space& s, int d) {
  for (int e = d; e + 1 < s.rank; ++e) {
    s.extent[e] = s.extent[e + 1];
    for (int o = 0; o < OPERANDS; ++o) s.stride[o][e] = s.stride[o][e + 1];
  }
  --s.rank;
}

// Merges those of the dimensions first .. first + count - 1 that every operand walks with one stride,
// and drops those of extent 1; returns how many are left.
[[maybe_unused]] static int coalesce(Space& s, int first, int count) {
  for (int d = first + count - 1; d >= first; --d) {
    bool merge = s.extent[d] == 1;
    if (!merge && d + 1 < first + count) {
      merge = true;
      for (int o = 0; o < OPERANDS; ++o) merge &= s.stride[o][d] == s.stride[o][d + 1] * s.extent[d + 1];
      if (merge) s.extent[d + 1] *= s.extent[d];
    }
    if (merge) {
      drop_dimension(s, d);
      --count;
    }
  }
  return count;
}

// 64-bit division costs several times as much as 32-bit division.
__device__ __forceinline__ int64_t quotient(int64_t a, int64_t b) {
  return ((a | b) >> 32) ? a / b : int64_t(uint32_t(a) / uint32_t(b));
}
__device__ __forceinline__ int quotient(int a, int b) { return int(unsigned(a) / unsigned(b)); }

// Adds to `at` where each operand has point `index` of the dimensions first .. first + count - 1; both
// are 32-bit where the caller knows that everything fits.
template <typename Index>
__device__ __forceinline__ void locate(const Space& s, int first, int count, Index index,
                                       Index (&at)[OPERANDS]) {
#pragma unroll
  for (int d = RANK - 1; d >= 0; --d) {
    if (d < first || d >= first + count) continue;
    Index here = index;
    if (d > first) {
      const Index extent = Index(s.extent[d]), outer = quotient(index, extent);
      here = index - outer * extent;
      index = outer;
    }
#pragma unroll
    for (int o = 0; o < OPERANDS; ++o) at[o] += here * Index(s.stride[o][d]);
  }
}

[[maybe_unused]] static unsigned grid_for(int64_t blocks) {
  const int64_t most = 2147483647;
  return unsigned(blocks < most ? blocks : most);
}
