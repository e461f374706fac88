// The rows of a space: kept dimensions first, then the reduced ones; each merged where strides allow.
struct Rows {
  Space space;
  int outer, inner;  // dimensions that number the rows, and dimensions inside a row
  int64_t rows, length;
};

// Puts the space's dimensions in another order.
[[maybe_unused]] static void arrange(Space& s, const int (&order)[RANK]) {
  const Space from = s;
  for (int d = 0; d < RANK; ++d) {
    s.extent[d] = from.extent[order[d]];
    for (int o = 0; o < OPERANDS; ++o) s.stride[o][d] = from.stride[o][order[d]];
  }
}

[[maybe_unused]] static Rows rows_of(Space space) {
  Rows r = {};
  arrange(space, ORDER);
  r.rows = points(space, 0, KEPT);
  r.length = points(space, KEPT, RANK - KEPT);
  r.inner = coalesce(space, KEPT, RANK - KEPT);
  r.outer = coalesce(space, 0, KEPT);
  for (int o = 0; o < OPERANDS; ++o) space.inner[o] = r.inner ? space.stride[o][space.rank - 1] : 0;
  r.space = space;
  return r;
}

// Whether an operand can be moved in packs of PACK elements of `size` bytes along its rows.
[[maybe_unused]] static bool row_packs(const Rows& r, int operand, const stitch_tensor& t, int size, bool written) {
  const Space& s = r.space;
  if (r.inner == 0 || s.extent[s.rank - 1] % PACK != 0) return false;
  if (s.inner[operand] == 0 && !written) return true;
  if (s.inner[operand] != 1 || reinterpret_cast<uintptr_t>(t.data) % (size * PACK) != 0) return false;
  for (int d = 0; d + 1 < s.rank; ++d) {
    if (s.stride[operand][d] % PACK != 0) return false;
  }
  return true;
}

// How a row lies in memory: in any way; as planes of neighbours; as neighbours.
enum Form { SCATTERED, PLANES, FLAT };

// Quotients of numbers below 2^31 without a division, by Granlund and Montgomery.
struct Planes {
  unsigned extent, factor;
  int shift;
};

[[maybe_unused]] static Planes planes_of(const Rows& r) {
  const int64_t extent = r.inner == 2 ? r.space.extent[r.space.rank - 1] : 0;
  if (extent < 2 || extent >= 2147483647) return {};
  Planes p = {unsigned(extent), 0, -1};
  while ((1ull << (p.shift + 1)) < p.extent) ++p.shift;
  p.factor = unsigned((1ull << (32 + p.shift)) / p.extent + 1);
  return p;
}

// Adds to `at` where each operand's row begins.
template <Form FORM>
__device__ __forceinline__ void row_starts(const Space& s, int outer, int64_t row, int64_t (&at)[OPERANDS]) {
  if constexpr (FORM == SCATTERED) {
    locate(s, 0, outer, row, at);
  } else {
#pragma unroll
    for (int o = 0; o < OPERANDS; ++o) at[o] += row * s.stride[o][0];
  }
}

// Where each operand has element `d` of a row, from where the row begins.
template <Form FORM, typename Index>
__device__ __forceinline__ void place_in_row(const Space& s, int outer, int inner, const Planes& planes, Index d,
                                             Index (&here)[OPERANDS]) {
  if constexpr (FORM == SCATTERED) {
    locate(s, outer, inner, d, here);
  } else {
    const Index plane = FORM == PLANES ? Index(__umulhi(unsigned(d), planes.factor) >> planes.shift) : 0;
    const Index rest = d - plane * Index(planes.extent);
#pragma unroll
    for (int o = 0; o < OPERANDS; ++o) {
      here[o] = FORM == FLAT ? d : plane * Index(s.stride[o][RANK > 1 ? 1 : 0]) + rest * Index(s.inner[o]);
    }
  }
}

// Whether 32 bits hold every offset inside a row, and one step past it.
[[maybe_unused]] static bool compact(const Rows& r) {
  for (int o = 0; o < OPERANDS; ++o) {
    int64_t reach = 0;
    for (int d = r.outer; d < r.space.rank; ++d) reach += (r.space.extent[d] - 1) * r.space.stride[o][d];
    if (reach >= 2147483647) return false;
  }
  return r.length < 2147483647 - 65536;
}
