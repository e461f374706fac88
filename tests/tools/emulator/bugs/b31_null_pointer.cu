#include <cuda_runtime.h>
#include "stitch.h"
__global__ void scale(const float* x, const float* gains, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * gains[0];   // BUG: null-access|illegal-address|host-pointer-in-kernel
}
extern "C" int stitch_run(const stitch_call* c) {
  const float* x = (const float*)c->in[0].data;
  float* y = (float*)c->out[0].data;
  int n = (int)c->in[0].numel;
  cudaStream_t st = (cudaStream_t)c->stream;
  scale<<<(n + 255) / 256, 256, 0, st>>>(x, nullptr, y, n);
  return (int)cudaGetLastError();
}
