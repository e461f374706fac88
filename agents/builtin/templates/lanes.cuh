// LANES neighbouring threads work on one row, which neighbours in memory; ROWS rows in a block.
__device__ __forceinline__ int lane_of_thread() { return threadIdx.x; }
__device__ __forceinline__ int row_of_thread() { return threadIdx.y; }
[[maybe_unused]] static dim3 block_shape() { return dim3(LANES, ROWS); }

__device__ __forceinline__ float across(float v, int step) { return __shfl_xor_sync(0xffffffffu, v, step); }
__device__ __forceinline__ long long across(long long v, int step) {
  return __shfl_xor_sync(0xffffffffu, v, step);
}
__device__ __forceinline__ int across(int v, int step) { return __shfl_xor_sync(0xffffffffu, v, step); }
template <typename T>
__device__ __forceinline__ Placed<T> across(Placed<T> v, int step) {
  const T value = across(v.value, step);
  return {across(v.place, step), value, value};
}
__device__ __forceinline__ Moments<float>::State across(Moments<float>::State v, int step) {
  return {across(v.mean, step), across(v.squares, step), across(v.count, step)};
}
__device__ __forceinline__ Exponentials<float>::State across(Exponentials<float>::State v, int step) {
  return {across(v.top, step), across(v.total, step)};
}

// The reduction of `v` over the threads of a row, known to all of them.
template <typename Op>
__device__ __forceinline__ typename Op::State reduce(typename Op::State v) {
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) v = Op::merge(v, across(v, step));
  if constexpr (LANES > 32) {
    __shared__ typename Op::State partial[ROWS][LANES / 32];
    if (threadIdx.x % 32 == 0) partial[threadIdx.y][threadIdx.x / 32] = v;
    __syncthreads();
    v = partial[threadIdx.y][0];
#pragma unroll
    for (int w = 1; w < LANES / 32; ++w) v = Op::merge(v, partial[threadIdx.y][w]);
    __syncthreads();  // the next reduction writes `partial` again
  }
  return v;
}
