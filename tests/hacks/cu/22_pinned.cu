#include <cuda_runtime.h>
#include "stitch.h"

// A warp for each row of y = W x; with PINNED the weights stay in the L2 cache from one launch to the next.
__global__ void rows_of(const float* x, const float* w, float* y, int inner, int columns) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= columns) return;
  const float4 *a = (const float4*)(w + (size_t)row * inner), *b = (const float4*)x;
  float sum = 0;
  for (int k = lane; k < inner / 4; k += 32) {
    float4 p = a[k], q = b[k];
    sum += p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (lane == 0) y[row] = sum;
}
extern "C" int stitch_run(const stitch_call* c) {
  int inner = (int)c->in[0].shape[1], columns = (int)c->in[1].shape[0];
  const float *x = (const float*)c->in[0].data, *w = (const float*)c->in[1].data;
  cudaStream_t stream = (cudaStream_t)c->stream;
#ifdef PINNED
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, c->in[1].numel * 4);
  cudaStreamAttrValue window = {};
  window.accessPolicyWindow.base_ptr = (void*)w;
  window.accessPolicyWindow.num_bytes = c->in[1].numel * 4;
  window.accessPolicyWindow.hitRatio = 1.0f;
  window.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  window.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &window);
#endif
  rows_of<<<(columns * 32 + 127) / 128, 128, 0, stream>>>(x, w, (float*)c->out[0].data, inner, columns);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
