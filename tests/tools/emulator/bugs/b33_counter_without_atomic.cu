#include <cuda_runtime.h>
#include "stitch.h"
__global__ void count(const float* x, float* y, int n) {
  __shared__ int larger;
  int t = threadIdx.x;
  if (t == 0) larger = 0;
  __syncthreads();
  if (x[t] > 5.0f) larger = larger + 1;   // BUG: race-read-after-write|race-write-write
  __syncthreads();
  for (int i = t; i < n; i += 256) y[i] = (float)larger;
}
extern "C" int stitch_run(const stitch_call* c) {
  const float* x = (const float*)c->in[0].data;
  float* y = (float*)c->out[0].data;
  int n = (int)c->in[0].numel;
  cudaStream_t st = (cudaStream_t)c->stream;
  count<<<1, 256, 0, st>>>(x, y, n);
  return (int)cudaGetLastError();
}
