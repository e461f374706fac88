#include <cuda_runtime.h>
#include "stitch.h"
__global__ void turned(const float* x, float* y, int n) {
  extern __shared__ float tile[];
  int t = threadIdx.x;
  tile[t] = x[t];   // BUG: no-dynamic-shared|out-of-bounds-shared
  __syncthreads();
  for (int i = t; i < n; i += 256) y[i] = tile[255 - t];
}
extern "C" int stitch_run(const stitch_call* c) {
  const float* x = (const float*)c->in[0].data;
  float* y = (float*)c->out[0].data;
  int n = (int)c->in[0].numel;
  cudaStream_t st = (cudaStream_t)c->stream;
  turned<<<1, 256, 0, st>>>(x, y, n);
  return (int)cudaGetLastError();
}
