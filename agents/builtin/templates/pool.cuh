// Input and output of a pooling: three dimensions of windows (unused ones of extent 1), and those in front.
struct Plane {
  int64_t in[3], out[3], stride[3];
  int64_t outer_extent[RANK], outer_stride[RANK];
  int outer_dims;
};

// Extents of the window along one dimension: elements first .. end - 1 in steps of the dilation.
struct Side {
  int first, end;
  int padded;  // elements, with those of the padding
  int start;   // with the padding
  __device__ __forceinline__ bool holds(int place) const { return place >= first && place < end; }
};
__device__ __forceinline__ Side side_at(const Plane& p, int d, int index) {
  const int extent = int(p.in[d]);
  if (ADAPTIVE) {  // windows share their ends where the extents do not divide
    const int out = int(p.out[d]);
    const int first = int(int64_t(index) * extent / out);
    const int end = int(((int64_t(index) + 1) * extent + out - 1) / out);
    return {first, end, end - first, first};
  }
  const int start = index * step_of(d) - padding_of(d);
  const int whole = start + (size_of(d) - 1) * dilation_of(d) + 1;
  const int limit = extent + padding_of(d);
  const int skipped = start < 0 ? (-start + dilation_of(d) - 1) / dilation_of(d) : 0;
  return {start + skipped * dilation_of(d), whole < extent ? whole : extent, (whole < limit ? whole : limit) - start, start};
}

// Elements by which a sum is divided.
[[maybe_unused]] __device__ __forceinline__ int window_size(const Plane&, const Side& d, const Side& h, const Side& w) {
  if (COUNT_PADDING) return d.padded * h.padded * w.padded;
  return (d.end - d.first) * (h.end - h.first) * (w.end - w.first);
}

template <typename Index>
__device__ __forceinline__ Index outer_place(const Plane& p, Index index) {
  Index place = 0;
#pragma unroll
  for (int d = RANK - 1; d >= 0; --d) {
    if (d >= p.outer_dims) continue;
    const Index extent = Index(p.outer_extent[d]), above = quotient(index, extent);
    place += (index - above * extent) * Index(p.outer_stride[d]);
    index = above;
  }
  return place;
}

// Whether 32 bits hold every place in the input and in the operands, and one step of the grid past them.
static bool compact(const Space& s, const stitch_tensor& input, int64_t count) {
  const int64_t most = 1 << 30;
  int64_t reach = 0;
  for (int d = 0; d < input.ndim; ++d) reach += (input.shape[d] - 1) * input.strides[d];
  for (int o = 0; o < OPERANDS; ++o) {
    int64_t own = 0;
    for (int d = 0; d < s.rank; ++d) own += (s.extent[d] - 1) * s.stride[o][d];
    reach = reach < own ? own : reach;
  }
  return count < most && reach < most;
}

// How many windows PyTorch puts along an extent.
static int64_t windows(int64_t extent, int d) {
  const int64_t room = extent + 2 * padding_of(d) - dilation_of(d) * (size_of(d) - 1) - 1;
  int64_t count = (room + (CEIL ? step_of(d) - 1 : 0)) / step_of(d) + 1;
  if (CEIL && (count - 1) * step_of(d) >= extent + padding_of(d)) --count;  // it would lie in the padding alone
  return count;
}

static bool plane_of(Plane& p, const Space& space, const stitch_tensor& t) {
  if (t.ndim != RANK || RANK < DIMS) return false;
  p = {};
  p.outer_dims = RANK - DIMS;
  for (int d = 0; d < RANK - DIMS; ++d) {
    if (t.shape[d] != space.extent[d]) return false;
    p.outer_extent[d] = t.shape[d], p.outer_stride[d] = t.strides[d];
  }
  for (int d = 0; d < 3; ++d) {
    const int from = RANK - 3 + d;
    const bool used = d >= 3 - DIMS;
    p.in[d] = used ? t.shape[from] : 1;
    p.out[d] = used ? space.extent[from] : 1;
    p.stride[d] = used ? t.strides[from] : 0;
    if (p.in[d] >= 1073741824 || p.in[d] == 0) return false;
    if (!ADAPTIVE && windows(p.in[d], d) != p.out[d]) return false;
  }
  // neighbours of one stride are walked as one dimension
  int kept = 0;
  for (int d = 0; d < p.outer_dims; ++d) {
    if (kept && p.outer_stride[kept - 1] == p.outer_stride[d] * p.outer_extent[d]) {
      p.outer_extent[kept - 1] *= p.outer_extent[d];
      p.outer_stride[kept - 1] = p.outer_stride[d];
    } else {
      p.outer_extent[kept] = p.outer_extent[d], p.outer_stride[kept] = p.outer_stride[d];
      ++kept;
    }
  }
  p.outer_dims = kept;
  return true;
}
