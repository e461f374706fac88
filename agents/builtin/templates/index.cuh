// Extents and strides of each tensor; a dimension of extent 1 repeats.
struct Layout {
  int64_t extent[MOST_DIMENSIONS], stride[MOST_DIMENSIONS];
};
struct Layouts {
  Layout of[OPERANDS];
};

[[maybe_unused]] static Layout layout(const stitch_tensor& t) {
  Layout l = {};
  for (int d = 0; d < t.ndim; ++d) l.extent[d] = t.shape[d], l.stride[d] = t.shape[d] == 1 ? 0 : t.strides[d];
  return l;
}

// Of numbers that are not negative; 64-bit division costs several times as much as 32-bit division.
[[maybe_unused]] __device__ __forceinline__ int64_t divided(int64_t a, int64_t b) {
  return ((a | b) >> 32) ? a / b : int64_t(uint32_t(a) / uint32_t(b));
}

[[maybe_unused]] static bool same_shape(const stitch_tensor& a, const stitch_tensor& b) {
  for (int d = 0; d < a.ndim; ++d) {
    if (a.shape[d] != b.shape[d]) return false;
  }
  return true;
}

[[maybe_unused]] static unsigned grid_for(int64_t blocks) {
  const int64_t most = 2147483647;
  return unsigned(blocks < most ? blocks : most);
}
