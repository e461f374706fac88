struct Sum {
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};
struct Highest {
  __device__ __forceinline__ float operator()(float a, float b) const { return pick_max(a, b); }
};
struct Lowest {
  __device__ __forceinline__ float operator()(float a, float b) const { return pick_min(a, b); }
};

// The reduction of `v` over the LANES threads of a row, known to all of them.
template <int LANES, typename Op>
__device__ __forceinline__ float reduce(float v, Op op) {
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) v = op(v, __shfl_xor_sync(0xffffffffu, v, step));
  if constexpr (LANES > 32) {
    __shared__ float partial[LANES / 32];
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
    __syncthreads();
    v = partial[0];
#pragma unroll
    for (int w = 1; w < LANES / 32; ++w) v = op(v, partial[w]);
    __syncthreads();  // the next reduction writes `partial` again
  }
  return v;
}
