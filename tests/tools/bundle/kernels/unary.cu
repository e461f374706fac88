#include "stitch.h"
#include <math.h>
__global__ void apply(const float* x, float* y, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) { float v = x[i]; y[i] = EXPRESSION; }
}
extern "C" int stitch_run(const stitch_call* c) {
  int64_t n = c->in[0].numel;
  const float* x = (const float*)c->in[0].data;
  apply<<<(n + 63) / 64, 64, 0, (cudaStream_t)c->stream>>>(x, (float*)c->out[0].data, n);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
