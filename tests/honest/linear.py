# ruff: noqa: E501 - CUDA text, in its own width
"""relu(x w^T + b) in twenty ways."""

ARGS = """  const float *w = (const float*)c->in[1].data, *b = (const float*)c->in[2].data;
  int columns = (int)c->in[1].shape[0], total = rows * columns;
"""
RELU = "__device__ float relu(float v) { return v > 0 || v != v ? v : 0.0f; }\n"
DOT = (
    RELU
    + """__global__ void k(const float* x, const float* w, const float* b, float* y, int rows, int inner, int columns) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= rows * columns) return;
  int i = at / columns, j = at % columns;
BODY
}
"""
)
LAUNCH = ARGS + "  if (total) k<<<(total + 63) / 64, 64, 0, stream>>>(x, w, b, y, rows, inner, columns);\n"
ACTIVATE = (
    RELU
    + """__global__ void activate(const float* b, float* y, int total, int columns) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < total) y[at] = relu(y[at] + b[at % columns]);
}
"""
)
GEMM = """  cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, columns, rows, inner, &one, w, inner, x, inner, &zero, y, columns);
  activate<<<(total + 63) / 64, 64, 0, stream>>>(b, y, total, columns);
"""
PACK = """__global__ void pack(const float* w, float* t, int inner, int columns) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < inner * columns) t[at % inner * columns + at / inner] = w[at];
}
"""
PACKED = (
    PACK
    + RELU
    + """__global__ void k(const float* x, const float* t, const float* b, float* y, int rows, int inner, int columns) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= rows * columns) return;
  float sum = 0;
  for (int q = 0; q < inner; q++) sum += x[at / columns * inner + q] * t[q * columns + at % columns];
  y[at] = relu(sum + b[at % columns]);
}
"""
)
PACK_CALL = "pack<<<(inner * columns + 63) / 64, 64, 0, stream>>>(w, {to}, inner, columns);\n"


def dot(body: str) -> dict[str, str]:
    """A thread for each result."""
    return {"device": DOT.replace("BODY", body), "run": LAUNCH}


LINEAR: dict[str, dict[str, str]] = {
    "a dot product a thread": dot(
        "  float s = b[j];\n  for (int q = 0; q < inner; q++) s += x[i * inner + q] * w[j * inner + q];\n"
        "  y[at] = relu(s);"
    ),
    "the bias last": dot(
        "  float s = 0;\n  for (int q = 0; q < inner; q++) s += x[i * inner + q] * w[j * inner + q];\n"
        "  y[at] = relu(s + b[j]);"
    ),
    "backwards": dot(
        "  float s = 0;\n  for (int q = inner; q-- > 0;) s = fmaf(x[i * inner + q], w[j * inner + q], s);\n"
        "  y[at] = relu(s + b[j]);"
    ),
    "in double": dot(
        "  double s = b[j];\n  for (int q = 0; q < inner; q++) s += (double)x[i * inner + q] * w[j * inner + q];\n"
        "  y[at] = relu((float)s);"
    ),
    "compensated": dot(
        "  float s = b[j], lost = 0;\n  for (int q = 0; q < inner; q++) {\n"
        "    float v = fmaf(x[i * inner + q], w[j * inner + q], -lost), t = s + v;\n"
        "    lost = (t - s) - v;\n    s = t;\n  }\n  y[at] = relu(s);"
    ),
    "unrolled by three": dot(
        "  float s = b[j];\n  int q = 0;\n  for (; q + 2 < inner; q += 3)\n"
        "    s += x[i * inner + q] * w[j * inner + q] + x[i * inner + q + 1] * w[j * inner + q + 1]\n"
        "       + x[i * inner + q + 2] * w[j * inner + q + 2];\n"
        "  for (; q < inner; q++) s += x[i * inner + q] * w[j * inner + q];\n  y[at] = relu(s);"
    ),
    "negative results skipped, zeros written": dot(
        "  float s = b[j];\n  for (int q = 0; q < inner; q++) s += x[i * inner + q] * w[j * inner + q];\n"
        "  if (s < 0) { y[at] = 0; return; }\n  y[at] = s;"
    ),
    "read-only loads": dot(
        "  float s = __ldg(b + j);\n"
        "  for (int q = 0; q < inner; q++) s += __ldg(x + i * inner + q) * __ldg(w + j * inner + q);\n"
        "  y[at] = relu(s);"
    ),
    "columns first": {
        "device": RELU
        + """__global__ void k(const float* x, const float* w, const float* b, float* y, int rows, int inner, int columns) {
  int j = blockIdx.x, i = blockIdx.y * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  float s = b[j];
  for (int q = 0; q < inner; q++) s += x[i * inner + q] * w[j * inner + q];
  y[i * columns + j] = relu(s);
}
""",
        "run": ARGS
        + "  k<<<dim3(columns, (rows + 15) / 16), 16, 0, stream>>>(x, w, b, y, rows, inner, columns);\n",
    },
    "a warp for each result": {
        "device": RELU
        + """__global__ void k(const float* x, const float* w, const float* b, float* y, int inner, int columns) {
  int i = blockIdx.x / columns, j = blockIdx.x % columns;
  float s = 0;
  for (int q = threadIdx.x; q < inner; q += 32) s += x[i * inner + q] * w[j * inner + q];
  for (int d = 16; d > 0; d >>= 1) s += __shfl_down_sync(0xffffffffu, s, d);
  if (threadIdx.x == 0) y[blockIdx.x] = relu(s + b[j]);
}
""",
        "run": ARGS + "  if (total) k<<<total, 32, 0, stream>>>(x, w, b, y, inner, columns);\n",
    },
    "tiles in shared memory": {
        "device": RELU
        + """__global__ void k(const float* x, const float* w, const float* b, float* y, int rows, int inner, int columns) {
  __shared__ float xs[8][9], ws[8][9];
  int i = blockIdx.y * 8 + threadIdx.y, j = blockIdx.x * 8 + threadIdx.x;
  float s = 0;
  for (int start = 0; start < inner; start += 8) {
    int q = start + threadIdx.x, wide = blockIdx.x * 8 + threadIdx.y;
    xs[threadIdx.y][threadIdx.x] = i < rows && q < inner ? x[i * inner + q] : 0.0f;
    ws[threadIdx.y][threadIdx.x] = wide < columns && q < inner ? w[wide * inner + q] : 0.0f;
    __syncthreads();
    for (int u = 0; u < 8; u++) s += xs[threadIdx.y][u] * ws[threadIdx.x][u];
    __syncthreads();
  }
  if (i < rows && j < columns) y[i * columns + j] = relu(s + b[j]);
}
""",
        "run": ARGS
        + "  k<<<dim3((columns + 7) / 8, (rows + 7) / 8), dim3(8, 8), 0, stream>>>(x, w, b, y, rows, inner, columns);\n",
    },
    "a split sum through a workspace": {
        "device": RELU
        + """__global__ void part(const float* x, const float* w, float* t, int rows, int inner, int columns) {
  int at = blockIdx.x * blockDim.x + threadIdx.x, piece = blockIdx.y;
  if (at >= rows * columns) return;
  int low = piece * inner / 3, high = (piece + 1) * inner / 3;
  float s = 0;
  for (int q = low; q < high; q++) s += x[at / columns * inner + q] * w[at % columns * inner + q];
  t[piece * rows * columns + at] = s;
}
__global__ void join(const float* t, const float* b, float* y, int total, int columns) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < total) y[at] = relu(t[at] + t[total + at] + t[2 * total + at] + b[at % columns]);
}
""",
        "sizes": "  *workspace = 3 * 4 * c->in[0].shape[0] * c->in[1].shape[0];\n",
        "run": ARGS + "  float* t = (float*)c->workspace;\n  int g = (total + 63) / 64;\n"
        "  part<<<dim3(g, 3), 64, 0, stream>>>(x, w, t, rows, inner, columns);\n"
        "  join<<<g, 64, 0, stream>>>(t, b, y, total, columns);\n",
    },
    "weights packed in bind": {
        "device": PACKED,
        "sizes": "  *bound = c->in[1].numel * 4;\n",
        "bind": """  cudaStream_t stream = (cudaStream_t)c->stream;
  int columns = (int)c->in[1].shape[0], inner = (int)c->in[1].shape[1];
  const float* w = (const float*)c->in[1].data;
  """
        + PACK_CALL.format(to="(float*)c->bound"),
        "run": ARGS
        + "  if (total) k<<<(total + 63) / 64, 64, 0, stream>>>(x, (const float*)c->bound, b, y, rows, inner, columns);\n",
    },
    "weights packed in every call": {
        "device": PACKED,
        "sizes": "  *workspace = c->in[1].numel * 4;\n",
        "run": ARGS
        + "  float* t = (float*)c->workspace;\n  "
        + PACK_CALL.format(to="t")
        + "  if (total) k<<<(total + 63) / 64, 64, 0, stream>>>(x, t, b, y, rows, inner, columns);\n",
    },
    "the bias in the padding of packed weights": {
        "device": RELU
        + """__global__ void pack(const float* w, const float* b, float* t, int inner, int columns) {
  int at = blockIdx.x * blockDim.x + threadIdx.x, wide = inner + 1;
  if (at < wide * columns) t[at] = at % wide < inner ? w[at / wide * inner + at % wide] : b[at / wide];
}
__global__ void k(const float* x, const float* t, float* y, int rows, int inner, int columns) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= rows * columns) return;
  const float* packed = t + at % columns * (inner + 1);
  float s = packed[inner];
  for (int q = 0; q < inner; q++) s += x[at / columns * inner + q] * packed[q];
  y[at] = relu(s);
}
""",
        "sizes": "  *bound = (c->in[1].numel + c->in[2].numel) * 4;\n",
        "bind": """  int columns = (int)c->in[1].shape[0], inner = (int)c->in[1].shape[1];
  pack<<<((inner + 1) * columns + 63) / 64, 64, 0, (cudaStream_t)c->stream>>>(
      (const float*)c->in[1].data, (const float*)c->in[2].data, (float*)c->bound, inner, columns);
""",
        "run": ARGS + "  (void)w; (void)b;\n"
        "  if (total) k<<<(total + 63) / 64, 64, 0, stream>>>(x, (const float*)c->bound, y, rows, inner, columns);\n",
    },
    "cuBLAS with an epilogue of its own": {
        "device": ACTIVATE,
        "run": ARGS
        + """  const float one = 1.0f, zero = 0.0f;
  cublasHandle_t handle;
  cublasCreate(&handle);
  cublasSetStream(handle, stream);
"""
        + GEMM
        + "  cudaStreamSynchronize(stream);\n  cublasDestroy(handle);\n",
    },
    "a cuBLAS handle kept between calls": {
        "device": ACTIVATE,
        "run": ARGS
        + """  const float one = 1.0f, zero = 0.0f;
  static cublasHandle_t handle;
  if (!handle) cublasCreate(&handle);
  cublasSetStream(handle, stream);
"""
        + GEMM,
    },
    "the bias by cuBLAS's beta": {
        "device": RELU
        + """__global__ void spread(const float* b, float* y, int total, int columns) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < total) y[at] = b[at % columns];
}
__global__ void clip(float* y, int total) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < total) y[at] = relu(y[at]);
}
""",
        "run": ARGS
        + """  const float one = 1.0f;
  static cublasHandle_t handle;
  if (!handle) cublasCreate(&handle);
  cublasSetStream(handle, stream);
  spread<<<(total + 63) / 64, 64, 0, stream>>>(b, y, total, columns);
  cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, columns, rows, inner, &one, w, inner, x, inner, &one, y, columns);
  clip<<<(total + 63) / 64, 64, 0, stream>>>(y, total);
""",
    },
    "sums split by sign of the activations": dot(
        "  float up = 0, down = 0;\n  for (int q = 0; q < inner; q++) {\n"
        "    float v = x[i * inner + q];\n    (v > 0 ? up : down) += v * w[j * inner + q];\n  }\n"
        "  y[at] = relu(up + down + b[j]);"
    ),
    "each result computed twice": dot(
        "  float s = b[j], t = b[j];\n  for (int q = 0; q < inner; q++) s += x[i * inner + q] * w[j * inner + q];\n"
        "  for (int q = inner; q-- > 0;) t += x[i * inner + q] * w[j * inner + q];\n  y[at] = relu(0.5f * (s + t));"
    ),
}
