// Each row is put through tanh 64 times, a row a block, one block an SM: with a few rows more than the device
// has SMs, nearly all of them wait for the last ones.
#include <cuda_runtime.h>
#include "stitch.h"

constexpr int SHARED = 200 * 1024;  // of the SM's 228: no second block fits

__global__ void __launch_bounds__(1024) settled(const float* x, float* y, long columns) {
  for (long j = threadIdx.x; j < columns; j += 1024) {
    float v = x[blockIdx.x * columns + j];
    for (int step = 0; step < 64; ++step) v = tanhf(v);
    y[blockIdx.x * columns + j] = v;
  }
}

extern "C" int stitch_run(const stitch_call* c) {
  long rows = c->in[0].shape[0], columns = c->in[0].shape[1];
  cudaFuncSetAttribute(settled, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
  settled<<<rows, 1024, SHARED, (cudaStream_t)c->stream>>>(
      (const float*)c->in[0].data, (float*)c->out[0].data, columns);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
