// y = x^T through a tile without padding: the 32 elements of a tile's column lie in one bank.
#include <cuda_runtime.h>
#include "stitch.h"

__global__ void transposed(const float* x, float* y, long rows, long columns) {
  __shared__ float tile[32][32];
  long row = blockIdx.y * 32L, column = blockIdx.x * 32L;
  for (int j = threadIdx.y; j < 32; j += 8)
    if (row + j < rows && column + threadIdx.x < columns)
      tile[threadIdx.x][j] = x[(row + j) * columns + column + threadIdx.x];
  __syncthreads();
  for (int j = threadIdx.y; j < 32; j += 8)
    if (column + j < columns && row + threadIdx.x < rows)
      y[(column + j) * rows + row + threadIdx.x] = tile[j][threadIdx.x];
}

extern "C" int stitch_run(const stitch_call* c) {
  long rows = c->in[0].shape[0], columns = c->in[0].shape[1];
  dim3 grid((columns + 31) / 32, (rows + 31) / 32);
  transposed<<<grid, dim3(32, 8), 0, (cudaStream_t)c->stream>>>(
      (const float*)c->in[0].data, (float*)c->out[0].data, rows, columns);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
