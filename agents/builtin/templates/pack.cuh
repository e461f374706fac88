// VEC neighbouring elements, moved by one instruction.
template <typename T, int VEC>
struct alignas(sizeof(T) * VEC) Pack {
  T at[VEC];
};

// Reads `live` elements that lie `inner` apart (0: one element, repeated).
template <int VEC, typename T>
__device__ __forceinline__ Pack<T, VEC> load_pack(const T* p, int64_t inner, int live) {
  if (VEC > 1 && inner == 1 && live == VEC) return *reinterpret_cast<const Pack<T, VEC>*>(p);
  Pack<T, VEC> v;
#pragma unroll
  for (int e = 0; e < VEC; ++e) v.at[e] = p[e < live ? e * inner : 0];
  return v;
}

template <int VEC, typename T>
__device__ __forceinline__ void store_pack(T* p, int64_t inner, int live, const Pack<T, VEC>& v) {
  if (VEC > 1 && inner == 1 && live == VEC) {
    *reinterpret_cast<Pack<T, VEC>*>(p) = v;
    return;
  }
#pragma unroll
  for (int e = 0; e < VEC; ++e) {
    if (e < live) p[e * inner] = v.at[e];
  }
}

// Whether an operand can be moved in packs of `vec` elements of `size` bytes.
[[maybe_unused]] static bool packs(const Space& s, int operand, const stitch_tensor& t, int size, int vec, bool written) {
  if (s.rank == 0) return false;
  if (s.inner[operand] == 0 && !written) return true;
  if (s.inner[operand] != 1 || reinterpret_cast<uintptr_t>(t.data) % (size * vec) != 0) return false;
  if (s.rank > 1 && s.extent[s.rank - 1] % vec != 0) return false;
  for (int d = 0; d + 1 < s.rank; ++d) {
    if (s.stride[operand][d] % vec != 0) return false;
  }
  return true;
}
