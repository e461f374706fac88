// y = x + 64 as 64 kernels of a microsecond: the launches take longer than the work.
#include <cuda_runtime.h>
#include "stitch.h"

__global__ void raised(const float* x, float* y, long n) {
  long i = blockIdx.x * 256L + threadIdx.x;
  if (i < n) y[i] = x[i] + 1.0f;
}

extern "C" int stitch_run(const stitch_call* c) {
  long n = c->in[0].numel;
  float* y = (float*)c->out[0].data;
  const float* from = (const float*)c->in[0].data;
  for (int step = 0; step < 64; ++step, from = y)
    raised<<<(n + 255) / 256, 256, 0, (cudaStream_t)c->stream>>>(from, y, n);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
