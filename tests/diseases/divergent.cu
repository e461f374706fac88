// Another function for each of eight neighbouring elements: a warp walks through all eight branches.
#include <cuda_runtime.h>
#include "stitch.h"

__global__ void various(const float* x, float* y, long n) {
  long i = blockIdx.x * 256L + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  switch (i & 7) {
    case 0: v = sinf(v); break;
    case 1: v = cosf(v); break;
    case 2: v = expf(v); break;
    case 3: v = log1pf(v); break;
    case 4: v = tanhf(v); break;
    case 5: v = erff(v); break;
    case 6: v = atanf(v); break;
    default: v = sinhf(v); break;
  }
  y[i] = v;
}

extern "C" int stitch_run(const stitch_call* c) {
  long n = c->in[0].numel;
  various<<<(n + 255) / 256, 256, 0, (cudaStream_t)c->stream>>>(
      (const float*)c->in[0].data, (float*)c->out[0].data, n);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
