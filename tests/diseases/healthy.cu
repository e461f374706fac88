// y = 2 x with 16 bytes an access: nothing to mend.
#include <cuda_runtime.h>
#include "stitch.h"

__global__ void scaled(const float* x, float* y, long n) {
  long i = (blockIdx.x * 256L + threadIdx.x) * 4;
  if (i + 3 < n) {
    float4 v = *(const float4*)(x + i);
    *(float4*)(y + i) = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
  } else {
    for (; i < n; ++i) y[i] = 2.0f * x[i];
  }
}

extern "C" int stitch_run(const stitch_call* c) {
  long n = c->in[0].numel;
  scaled<<<(n + 1023) / 1024, 256, 0, (cudaStream_t)c->stream>>>(
      (const float*)c->in[0].data, (float*)c->out[0].data, n);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
