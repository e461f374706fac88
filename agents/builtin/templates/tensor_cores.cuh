// Each factor is the sum of two TF32 numbers, and a product of two f32 the sum of three of them:
//   a b = a_low b_high + a_high b_low + a_high b_high, but for 2^-22 of it, which is what f32 has, too.
// The numbers lie side by side along K, so that one product of depth 3 K adds all three.
struct Parts {
  float low, finite, high;  // `finite` is `high`, or 0: infinity times a low part would be NaN
};

__device__ __forceinline__ float rounded_to_tf32(float v) {
  return __uint_as_float((__float_as_uint(v) + 0x1000u) & 0xffffe000u);
}

__device__ __forceinline__ Parts parts_of(float v) {
  if ((__float_as_uint(v) & 0x7f800000u) == 0x7f800000u) return {0.0f, 0.0f, v};
  float high = rounded_to_tf32(v);
  if (isinf(high)) high = __uint_as_float(__float_as_uint(v) & 0xffffe000u);
  return {rounded_to_tf32(v - high), high, high};
}

// `rows` x `k` numbers; the left factor, or the right one transposed.
struct Factor {
  const float* at;
  int64_t rows, k, row_step, k_step;
  bool left;
};

static int64_t packs_of(int64_t k) { return k > 0 ? (k + 3) / 4 : 1; }  // of nothing, a pack of zeros
static int64_t parts_bytes(int64_t rows, int64_t k) { return rows * 3 * 4 * packs_of(k) * 4; }

static Factor left_factor(const Product& p) {
  const bool along = p.a_op == CUBLAS_OP_N;
  return {(const float*)p.a, p.m, p.k, along ? p.a_ld : 1, along ? 1 : p.a_ld, true};
}
static Factor right_factor(const Product& p) {
  const bool along = p.b_op == CUBLAS_OP_T;
  return {(const float*)p.b, p.n, p.k, along ? p.b_ld : 1, along ? 1 : p.b_ld, false};
}

// A thread splits four numbers at a time; neighbouring threads read neighbours.
__global__ void __launch_bounds__(SPLIT_THREADS) split_factor(Factor f, int64_t packs, bool whole, float* parts) {
  const int64_t count = f.rows * packs, step = (int64_t)gridDim.x * SPLIT_THREADS;
  for (int64_t i = (int64_t)blockIdx.x * SPLIT_THREADS + threadIdx.x; i < count; i += step) {
    const bool along = f.k_step == 1;
    const int64_t outer = quotient(i, along ? packs : f.rows), inner = i - outer * (along ? packs : f.rows);
    const int64_t row = along ? outer : inner, k = 4 * (along ? inner : outer);
    const float* from = f.at + row * f.row_step + k * f.k_step;
    Pack<float, 4> v, low, finite, high;
    if (whole) {
      v = *reinterpret_cast<const Pack<float, 4>*>(from);
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e) v.at[e] = k + e < f.k ? from[e * f.k_step] : 0.0f;
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const Parts p = parts_of(v.at[e]);
      low.at[e] = p.low, finite.at[e] = p.finite, high.at[e] = p.high;
    }
    Pack<float, 4>* to = reinterpret_cast<Pack<float, 4>*>(parts) + row * 3 * packs + k / 4;
    to[0] = f.left ? low : finite;
    to[packs] = f.left ? finite : low;
    to[2 * packs] = high;
  }
}

static void split(const Factor& f, float* parts, cudaStream_t stream) {
  const int64_t packs = packs_of(f.k), count = f.rows * packs;
  if (count == 0) return;
  const bool whole = f.k > 0 && f.k_step == 1 && f.k % 4 == 0 && f.row_step % 4 == 0 && (uintptr_t)f.at % 16 == 0;
  split_factor<<<grid_for((count + SPLIT_THREADS - 1) / SPLIT_THREADS), SPLIT_THREADS, 0, stream>>>(f, packs, whole,
                                                                                                   parts);
}

// What the library adds to the product, where not null: a number for each column, one for each element.
struct Added {
  const float *bias, *residual;
};

// What cuBLASLt wants to know about result[m, n] = left[m, depth] right[n, depth]^T + bias[n] + residual[m, n];
// all are contiguous.
struct Description {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t left = nullptr, right = nullptr, result = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasStatus_t status;
  Description(int64_t m, int64_t n, int64_t depth, const float* bias) {
    status = cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F);
    const cublasOperation_t transposed = CUBLAS_OP_T;
    set(CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
    if (bias) {
      const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    }
    then(cublasLtMatrixLayoutCreate(&right, CUDA_R_32F, depth, n, depth));
    then(cublasLtMatrixLayoutCreate(&left, CUDA_R_32F, depth, m, depth));
    then(cublasLtMatrixLayoutCreate(&result, CUDA_R_32F, n, m, n));
    then(cublasLtMatmulPreferenceCreate(&preference));
    const size_t most = (size_t)SCRATCH_MIB << 20;
    if (status == CUBLAS_STATUS_SUCCESS)
      then(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                                sizeof most));
  }
  Description(const Description&) = delete;
  ~Description() {
    if (preference) cublasLtMatmulPreferenceDestroy(preference);
    for (cublasLtMatrixLayout_t layout : {left, right, result}) {
      if (layout) cublasLtMatrixLayoutDestroy(layout);
    }
    if (operation) cublasLtMatmulDescDestroy(operation);
  }
  void then(cublasStatus_t next) {
    if (status == CUBLAS_STATUS_SUCCESS) status = next;
  }
  void set(cublasLtMatmulDescAttributes_t what, const void* value, size_t bytes) {
    if (status == CUBLAS_STATUS_SUCCESS) then(cublasLtMatmulDescSetAttribute(operation, what, value, bytes));
  }
  // The library's algorithms, the likeliest first; returns how many.
  int algorithms(cublasLtHandle_t handle, cublasLtMatmulHeuristicResult_t* found, int most) {
    int count = 0;
    if (status == CUBLAS_STATUS_SUCCESS)
      then(cublasLtMatmulAlgoGetHeuristic(handle, operation, right, left, result, result, preference, most, found,
                                          &count));
    return status == CUBLAS_STATUS_SUCCESS ? count : 0;
  }
};

// One product as bind chose it, and the library's handle.
struct Chosen {
  cublasLtHandle_t handle = nullptr;
  int64_t m = -1, n = -1, depth = -1;
  cublasLtMatmulAlgo_t algorithm;
};

static cublasStatus_t multiply_parts(const Description& d, cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                                     const float* left, const float* right, const float* residual, float* result,
                                     void* scratch, cudaStream_t stream) {
  const float one = 1.0f, zero = 0.0f;
  return cublasLtMatmul(handle, d.operation, &one, right, d.right, left, d.left, residual ? &one : &zero,
                        residual ? residual : result, d.result, result, d.result, &algorithm, scratch,
                        (size_t)SCRATCH_MIB << 20, stream);
}

// Tries the library's algorithms, on whatever the workspace holds, and keeps the fastest.
static void choose(Chosen& chosen, int64_t m, int64_t n, int64_t depth, const Added& added, const float* left,
                   const float* right, float* result, void* scratch, cudaStream_t stream) {
  if (chosen.m == m && chosen.n == n && chosen.depth == depth) return;
  Description d(m, n, depth, added.bias);
  cublasLtMatmulHeuristicResult_t found[ALGORITHMS];
  const int count = d.algorithms(chosen.handle, found, ALGORITHMS);
  if (count == 0) return;
  int best = 0;
  float least = INFINITY;
  cudaEvent_t begin, end;
  if (count > 1 && cudaEventCreate(&begin) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess) {
    for (int i = 0; i < count; ++i) {
      const auto run = [&] {
        return multiply_parts(d, chosen.handle, found[i].algo, left, right, added.residual ? result : nullptr, result,
                              scratch, stream);
      };
      float ms = INFINITY;
      bool ran = run() == CUBLAS_STATUS_SUCCESS;  // the first launch loads the kernel
      cudaEventRecord(begin, stream);
      for (int again = 0; again < 3; ++again) ran = ran && run() == CUBLAS_STATUS_SUCCESS;
      cudaEventRecord(end, stream);
      if (cudaEventSynchronize(end) == cudaSuccess && ran && cudaEventElapsedTime(&ms, begin, end) == cudaSuccess &&
          ms < least)
        best = i, least = ms;
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
  }
  chosen.m = m, chosen.n = n, chosen.depth = depth, chosen.algorithm = found[best].algo;
}

// Rows of the left factor that are split at a time.
static int64_t rows_at_once(const Product& p) {
  const int64_t fit = ((int64_t)PARTS_MIB << 20) / parts_bytes(1, p.k) / 64 * 64;
  return p.m < fit ? p.m : fit < 64 ? 64 : fit;
}

static int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }
static int64_t left_bytes(const Product& p) { return aligned(parts_bytes(rows_at_once(p), p.k)); }
static int64_t right_bytes(const Product& p) { return aligned(parts_bytes(p.n, p.k)); }

// Where the parts and the library's scratch lie in the workspace, behind `used` bytes.
struct Places {
  float *left, *right;
  char* scratch;
  Places(const Product& p, const stitch_call* call, int64_t used) {
    char* const begin = (char*)call->workspace + used;
    left = (float*)begin;
    scratch = begin + left_bytes(p);
    right = (float*)(RIGHT_IS_BOUND ? (char*)call->bound : scratch + ((int64_t)SCRATCH_MIB << 20));
  }
};

static int multiply(const Product& p, const Chosen& chosen, const stitch_call* call, Added added, float* result,
                    int64_t used) {
  const cudaStream_t stream = (cudaStream_t)call->stream;
  const Places places(p, call, used);
  if (!RIGHT_IS_BOUND) split(right_factor(p), places.right, stream);
  const int64_t most = rows_at_once(p), depth = 3 * 4 * packs_of(p.k);
  Factor rows = left_factor(p);
  for (int64_t first = 0; first < p.m; first += most) {
    rows.at = (const float*)p.a + first * rows.row_step;
    rows.rows = p.m - first < most ? p.m - first : most;
    split(rows, places.left, stream);
    Description d(rows.rows, p.n, depth, added.bias);
    cublasLtMatmulHeuristicResult_t found;
    const bool known = chosen.m == rows.rows && chosen.n == p.n && chosen.depth == depth;
    if (!known && d.algorithms(chosen.handle, &found, 1) == 0) return STITCH_CUDA_ERROR;
    d.then(multiply_parts(d, chosen.handle, known ? chosen.algorithm : found.algo, places.left, places.right,
                          added.residual, result + first * p.n, places.scratch, stream));
    if (d.status != CUBLAS_STATUS_SUCCESS) return STITCH_CUDA_ERROR;
    if (added.residual) added.residual += rows.rows * p.n;
  }
  return STITCH_OK;
}
