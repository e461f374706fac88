// y = x @ w of f16 matrices on the ordinary cores: a tile of 64 x 64 a block, 4 x 4 a thread.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include "stitch.h"

constexpr int TILE = 64, DEEP = 16;

__global__ void product(const __half* x, const __half* w, __half* y, long m, long n, long k) {
  __shared__ float a[DEEP][TILE + 4], b[DEEP][TILE];
  long row = blockIdx.y * (long)TILE, column = blockIdx.x * (long)TILE;
  int t = threadIdx.x, r = t / 16 * 4, s = t % 16 * 4;
  float sum[4][4] = {};
  for (long at = 0; at < k; at += DEEP) {
    for (int e = t; e < TILE * DEEP; e += 256) {
      int i = e / DEEP, j = e % DEEP;
      a[j][i] = row + i < m && at + j < k ? __half2float(x[(row + i) * k + at + j]) : 0.0f;
      i = e / TILE, j = e % TILE;
      b[i][j] = at + i < k && column + j < n ? __half2float(w[(at + i) * n + column + j]) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < DEEP; ++d)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] += a[d][r + i] * b[d][s + j];
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      if (row + r + i < m && column + s + j < n)
        y[(row + r + i) * n + column + s + j] = __float2half(sum[i][j]);
}

extern "C" int stitch_run(const stitch_call* c) {
  long m = c->in[0].shape[0], k = c->in[0].shape[1], n = c->in[1].shape[1];
  dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
  product<<<grid, 256, 0, (cudaStream_t)c->stream>>>(
      (const __half*)c->in[0].data, (const __half*)c->in[1].data, (__half*)c->out[0].data, m, n, k);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
