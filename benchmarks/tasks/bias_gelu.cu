// Bias, GELU (tanh) and a scale in one pass; the candidate of benchmarks/edit_to_verdict.py.
#include <cuda_runtime.h>

#include "stitch.h"

constexpr int THREADS = 256;
constexpr float SCALE = 0.5f;

__global__ void bias_gelu(const float* __restrict__ x, const float* __restrict__ bias, float* __restrict__ y,
                          int64_t count, int64_t width) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= count) return;
  const float v = x[i] + bias[i % width];
  const float inner = 0.7978845608028654f * (v + 0.044715f * v * v * v);
  y[i] = 0.5f * v * (1.0f + tanhf(inner)) * SCALE;
}

extern "C" int stitch_run(const stitch_call* call) {
  const stitch_tensor& x = call->in[0];
  if (x.numel == 0) return STITCH_OK;
  const int64_t blocks = (x.numel + THREADS - 1) / THREADS;
  bias_gelu<<<(unsigned)blocks, THREADS, 0, (cudaStream_t)call->stream>>>(
      (const float*)x.data, (const float*)call->in[1].data, (float*)call->out[0].data, x.numel,
      call->in[1].numel);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
