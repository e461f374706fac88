#include <cuda_runtime.h>
#include "stitch.h"
__global__ void add(const float* x, float* sum, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = sum[i] + x[i];   // BUG: uninitialised-read
  y[i] = v;
}
extern "C" int stitch_run(const stitch_call* c) {
  const float* x = (const float*)c->in[0].data;
  float* y = (float*)c->out[0].data;
  int n = (int)c->in[0].numel;
  cudaStream_t st = (cudaStream_t)c->stream;
  static float* sum = nullptr;
  if (!sum) cudaMalloc(&sum, n * sizeof(float));
  add<<<(n + 255) / 256, 256, 0, st>>>(x, sum, y, n);
  return (int)cudaGetLastError();
}
