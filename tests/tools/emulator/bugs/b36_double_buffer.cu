#include <cuda_runtime.h>
#include "stitch.h"
__global__ void running(const float* x, float* y, int n) {
  __shared__ float ring[2][64];
  int t = threadIdx.x;
  float sum = 0;
  ring[0][t] = x[t];
  __syncthreads();
  for (int start = 0, turn = 0; start < 256; start += 64, turn ^= 1) {
    sum += ring[turn][63 - t];                // no barrier before the other half is filled again
    ring[turn][t] = x[start + 64 + t];   // BUG: race-write-after-read
    __syncthreads();
    ring[turn ^ 1][t] = ring[turn][t];
    __syncthreads();
  }
  for (int i = t; i < n; i += 64) y[i] = sum;
}
extern "C" int stitch_run(const stitch_call* c) {
  const float* x = (const float*)c->in[0].data;
  float* y = (float*)c->out[0].data;
  int n = (int)c->in[0].numel;
  cudaStream_t st = (cudaStream_t)c->stream;
  running<<<1, 64, 0, st>>>(x, y, n);
  return (int)cudaGetLastError();
}
