#include <cuda_runtime.h>
#include "stitch.h"
__global__ void smooth(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
  __syncthreads();                            // of this block alone
  if (i + 256 < n) y[i] += y[i + 256];   // BUG: race-between-blocks|uninitialised-read
}
extern "C" int stitch_run(const stitch_call* c) {
  const float* x = (const float*)c->in[0].data;
  float* y = (float*)c->out[0].data;
  int n = (int)c->in[0].numel;
  cudaStream_t st = (cudaStream_t)c->stream;
  smooth<<<n / 256, 256, 0, st>>>(x, y, n);
  return (int)cudaGetLastError();
}
