static int multiply(const Product& p, cublasHandle_t handle, const stitch_call* call, void* result, int64_t used) {
  if (p.k == 0) {  // sums of nothing; there is no operand to give to cuBLAS
    const cudaError_t cleared = cudaMemsetAsync(result, 0, p.count * p.size, (cudaStream_t)call->stream);
    return cleared == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
  }
  const float one = 1.0f, zero = 0.0f;
  cublasStatus_t status = cublasSetStream(handle, (cudaStream_t)call->stream);
  // after the stream, which resets it: memory of cuBLAS's own would be allocated during capture
  if (status == CUBLAS_STATUS_SUCCESS)
    status = cublasSetWorkspace(handle, (char*)call->workspace + used, (size_t)SCRATCH_MIB << 20);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = cublasGemmStridedBatchedEx(
        handle, p.b_op, p.a_op, int(p.n), int(p.m), int(p.k), &one, p.b, p.type, int(p.b_ld), p.b_batch, p.a,
        p.type, int(p.a_ld), p.a_batch, &zero, result, p.type, int(p.n), p.m * p.n, int(p.batches),
        TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  return status == CUBLAS_STATUS_SUCCESS ? STITCH_OK : STITCH_CUDA_ERROR;
}

extern "C" int stitch_bind(const stitch_call* call) {
  if (*call->host_state) return STITCH_OK;
  cublasHandle_t handle;
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) return STITCH_CUDA_ERROR;
  cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH);
  *call->host_state = handle;
  return STITCH_OK;
}

extern "C" int stitch_unbind(const stitch_call* call) {
  if (*call->host_state) cublasDestroy((cublasHandle_t)*call->host_state);
  *call->host_state = nullptr;
  return STITCH_OK;
}
