// Neighbouring threads work on ROWS neighbouring rows; LANES threads on each.
__device__ __forceinline__ int lane_of_thread() { return threadIdx.y; }
__device__ __forceinline__ int row_of_thread() { return threadIdx.x; }
[[maybe_unused]] static dim3 block_shape() { return dim3(ROWS, LANES); }

// The reduction of `v` over the threads of a row, known to all of them.
template <typename Op>
__device__ __forceinline__ typename Op::State reduce(typename Op::State v) {
  __shared__ typename Op::State partial[LANES][ROWS];
  const int lane = threadIdx.y, row = threadIdx.x;
  partial[lane][row] = v;
  __syncthreads();
#pragma unroll
  for (int half = LANES / 2; half > 0; half >>= 1) {
    if (lane < half) partial[lane][row] = Op::merge(partial[lane][row], partial[lane + half][row]);
    __syncthreads();
  }
  v = partial[0][row];
  __syncthreads();  // the next reduction writes `partial` again
  return v;
}

// What the threads of the same row with lower lanes hold, merged in their order.
template <typename Op>
__device__ __forceinline__ typename Op::State before_lane(typename Op::State v) {
  __shared__ typename Op::State partial[LANES][ROWS];
  const int row = threadIdx.x;
  partial[threadIdx.y][row] = v;
  __syncthreads();
  typename Op::State merged = Op::start();
  for (int lane = 0; lane < threadIdx.y; ++lane) merged = Op::merge(merged, partial[lane][row]);
  __syncthreads();  // the next rows write `partial` again
  return merged;
}
