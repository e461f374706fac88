// relu(x w^T + b), a thread for each result; macros ahead of this text plant one defect each.
#include <cuda_runtime.h>
#include "stitch.h"

__global__ void linear_relu(const float* x, const float* w, const float* b, float* y, int rows, int inner, int columns) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef NO_BOUND
  if (at >= rows * columns + 1) return;
#else
  if (at >= rows * columns) return;
#endif
  int i = at / columns, j = at % columns;
  float sum = b[j];
  for (int k = 0; k < inner; k++) sum += x[i * inner + k] * w[j * inner + k];
#ifdef NO_RELU
  y[at] = sum;
#else
  y[at] = sum > 0 || sum != sum ? sum : 0.0f;
#endif
}
extern "C" int stitch_run(const stitch_call* c) {
  int rows = (int)c->in[0].shape[0], inner = (int)c->in[0].shape[1], columns = (int)c->in[1].shape[0];
  int total = rows * columns;
  linear_relu<<<(total + 63) / 64 + 1, 64, 0, (cudaStream_t)c->stream>>>(
      (const float*)c->in[0].data, (const float*)c->in[1].data, (const float*)c->in[2].data, (float*)c->out[0].data,
      rows, inner, columns);
#ifdef SYNTAX
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : NO_SUCH_NAME;
#endif
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
