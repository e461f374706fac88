// What the threads in front of this one hold, merged, and what all threads of the row hold.
template <typename Op>
struct Prefix {
  typename Op::State before, all;
};

// The prefix of `v` over the LANES threads of a row.
template <typename Op>
__device__ __forceinline__ Prefix<Op> prefix(typename Op::State v) {
  const int in_warp = threadIdx.x % 32;
  typename Op::State up_to = v;
#pragma unroll
  for (int step = 1; step < 32; step <<= 1) {
    const typename Op::State left = __shfl_up_sync(0xffffffffu, up_to, step);
    if (in_warp >= step) up_to = Op::merge(left, up_to);
  }
  typename Op::State before = __shfl_up_sync(0xffffffffu, up_to, 1);
  if (in_warp == 0) before = Op::start();
  typename Op::State all = __shfl_sync(0xffffffffu, up_to, 31);
  if constexpr (LANES > 32) {
    __shared__ typename Op::State warp_total[LANES / 32];
    if (in_warp == 31) warp_total[threadIdx.x / 32] = up_to;
    __syncthreads();
    typename Op::State front = Op::start();
    all = Op::start();
#pragma unroll
    for (int w = 0; w < LANES / 32; ++w) {
      if (w == threadIdx.x / 32) front = all;
      all = Op::merge(all, warp_total[w]);
    }
    before = Op::merge(front, before);
    __syncthreads();  // the next tile writes `warp_total` again
  }
  return {before, all};
}
