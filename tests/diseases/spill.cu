// The Walsh-Hadamard transform of 64 values, which live together in a thread that is allowed 32 registers.
#include <cuda_runtime.h>
#include "stitch.h"

__global__ void __launch_bounds__(1024, 2) mixed(const float* x, float* y, long groups) {
  long g = blockIdx.x * 1024L + threadIdx.x;
  if (g >= groups) return;
  float v[64];
#pragma unroll
  for (int j = 0; j < 64; ++j) v[j] = x[j * groups + g];
#pragma unroll
  for (int step = 1; step < 64; step *= 2)
#pragma unroll
    for (int j = 0; j < 64; ++j)
      if ((j & step) == 0) {
        float a = v[j], b = v[j + step];
        v[j] = a + b, v[j + step] = a - b;
      }
#pragma unroll
  for (int j = 0; j < 64; ++j) y[j * groups + g] = v[j];
}

extern "C" int stitch_run(const stitch_call* c) {
  long groups = c->in[0].shape[1];
  if (c->in[0].shape[0] != 64) return STITCH_UNSUPPORTED_SHAPE;
  mixed<<<(groups + 1023) / 1024, 1024, 0, (cudaStream_t)c->stream>>>(
      (const float*)c->in[0].data, (float*)c->out[0].data, groups);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
