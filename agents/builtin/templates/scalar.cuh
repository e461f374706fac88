// Scalar functions with PyTorch's treatment of NaN.
template <typename T>
__device__ __forceinline__ T pick_max(T a, T b) {
  return (a != a || a > b) ? a : b;
}
template <typename T>
__device__ __forceinline__ T pick_min(T a, T b) {
  return (a != a || a < b) ? a : b;
}
__device__ __forceinline__ float sign_of(float a) { return float(a > 0.0f) - float(a < 0.0f); }
