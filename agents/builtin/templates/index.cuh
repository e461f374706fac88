// Extents and strides of each tensor; a dimension of extent 1 repeats.
template <typename Index>
struct Layout {
  Index extent[MOST_DIMENSIONS], stride[MOST_DIMENSIONS];
};
template <typename Index>
struct Layouts {
  Layout<Index> of[OPERANDS];
};

template <typename Index>
[[maybe_unused]] static Layout<Index> layout(const stitch_tensor& t) {
  Layout<Index> l = {};
  for (int d = 0; d < t.ndim; ++d) {
    l.extent[d] = Index(t.shape[d]), l.stride[d] = t.shape[d] == 1 ? 0 : Index(t.strides[d]);
  }
  return l;
}

// Whether 32 bits hold every place in a tensor, and the product of two of its extents.
[[maybe_unused]] static bool compact(const stitch_tensor& t) {
  int64_t reach = 1;
  for (int d = 0; d < t.ndim; ++d) {
    if (t.shape[d] > 32768) return false;
    reach += (t.shape[d] - 1) * t.strides[d];
  }
  return t.numel < 1 << 30 && reach < 1 << 30;
}

// Whether neighbours along the last dimension can be moved in packs of PACK elements of `size` bytes.
[[maybe_unused]] static bool moves_in_packs(const stitch_tensor& t, int size) {
  if (t.ndim == 0 || t.shape[t.ndim - 1] % PACK != 0 || t.strides[t.ndim - 1] != 1) return false;
  for (int d = 0; d + 1 < t.ndim; ++d) {
    if (t.shape[d] != 1 && t.strides[d] % PACK != 0) return false;
  }
  return reinterpret_cast<uintptr_t>(t.data) % (size * PACK) == 0;
}

// Of numbers that are not negative; 64-bit division costs several times as much as 32-bit division.
template <typename T>
__device__ __forceinline__ T divided(T a, T b) {
  return sizeof(T) > 4 && (uint64_t(a | b) >> 32) ? a / b : T(uint32_t(a) / uint32_t(b));
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
