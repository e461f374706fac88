// y = 2 x over a matrix: neighbouring threads take neighbouring rows, so each access of a warp is 32 sectors.
#include <cuda_runtime.h>
#include "stitch.h"

__global__ void scaled(const float* x, float* y, long rows, long columns) {
  long i = blockIdx.x * 256L + threadIdx.x;
  if (i >= rows * columns) return;
  long at = i % rows * columns + i / rows;
  y[at] = 2.0f * x[at];
}

extern "C" int stitch_run(const stitch_call* c) {
  long columns = c->in[0].shape[1], n = c->in[0].numel;
  scaled<<<(n + 255) / 256, 256, 0, (cudaStream_t)c->stream>>>(
      (const float*)c->in[0].data, (float*)c->out[0].data, columns ? n / columns : 0, columns);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
