#include <cuda_runtime.h>
#include "stitch.h"
__global__ void difference(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] - x[i - 1];   // BUG: out-of-bounds
}
extern "C" int stitch_run(const stitch_call* c) {
  const float* x = (const float*)c->in[0].data;
  float* y = (float*)c->out[0].data;
  int n = (int)c->in[0].numel;
  cudaStream_t st = (cudaStream_t)c->stream;
  difference<<<(n + 255) / 256, 256, 0, st>>>(x, y, n);
  return (int)cudaGetLastError();
}
