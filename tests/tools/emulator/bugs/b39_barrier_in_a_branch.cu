#include <cuda_runtime.h>
#include "stitch.h"
__global__ void halves(const float* x, float* y, int n) {
  __shared__ float tile[256];
  int t = threadIdx.x;
  tile[t] = x[t];
  if (x[t] > 100.0f) {
    tile[t] *= 2;
    __syncthreads();   // BUG: barrier-divergence|deadlock
  }
  __syncthreads();   // BUG: barrier-divergence|deadlock
  for (int i = t; i < n; i += 256) y[i] = tile[t];
}
extern "C" int stitch_run(const stitch_call* c) {
  const float* x = (const float*)c->in[0].data;
  float* y = (float*)c->out[0].data;
  int n = (int)c->in[0].numel;
  cudaStream_t st = (cudaStream_t)c->stream;
  halves<<<1, 256, 0, st>>>(x, y, n);
  return (int)cudaGetLastError();
}
