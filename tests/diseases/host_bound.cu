// y = 2 x, after the host has computed for some 300 us what nobody needs.
#include <cuda_runtime.h>
#include <math.h>
#include "stitch.h"

__global__ void scaled(const float* x, float* y, float by, long n) {
  long i = blockIdx.x * 256L + threadIdx.x;
  if (i < n) y[i] = by * x[i];
}

extern "C" int stitch_run(const stitch_call* c) {
  volatile double angle = 0.5;
  for (int i = 0; i < 40000; ++i) angle = cos(angle);  // towards 0.739
  long n = c->in[0].numel;
  scaled<<<(n + 255) / 256, 256, 0, (cudaStream_t)c->stream>>>(
      (const float*)c->in[0].data, (float*)c->out[0].data, angle > 0 ? 2.0f : 0.0f, n);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
