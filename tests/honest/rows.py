# ruff: noqa: E501 - CUDA text, in its own width
"""Row sums of x, in twenty ways."""

WARP = """__device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
  return v;
}
"""
BLOCK_TREE = """__global__ void k(const float* x, float* y, int inner) {
  __shared__ float part[128];
  const float* row = x + (size_t)blockIdx.x * inner;
  float sum = 0;
  for (int j = threadIdx.x; j < inner; j += 128) sum += row[j];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int d = 64; d > 0; d >>= 1) {
    if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
"""
SERIAL = """__global__ void k(const float* x, float* y, int rows, int inner) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  const float* row = x + (size_t)i * inner;
{body}
}}
"""
PER_ROW = "  k<<<(rows + 31) / 32, 32, 0, stream>>>(x, y, rows, inner);\n"


def serial(body: str) -> dict[str, str]:
    """A thread for each row."""
    return {"device": SERIAL.format(body=body), "run": PER_ROW}


ROWS: dict[str, dict[str, str]] = {
    "a thread for each row": serial(
        "  float s = 0;\n  for (int j = 0; j < inner; j++) s += row[j];\n  y[i] = s;"
    ),
    "from the back": serial("  float s = 0;\n  for (int j = inner; j-- > 0;) s += row[j];\n  y[i] = s;"),
    "Kahan's summation": serial(
        "  float s = 0, lost = 0;\n  for (int j = 0; j < inner; j++) {\n"
        "    float v = row[j] - lost, t = s + v;\n    lost = (t - s) - v;\n    s = t;\n  }\n  y[i] = s;"
    ),
    "a double accumulator": serial(
        "  double s = 0;\n  for (int j = 0; j < inner; j++) s += row[j];\n  y[i] = (float)s;"
    ),
    "four partial sums": serial(
        "  float s[4] = {0, 0, 0, 0};\n  for (int j = 0; j < inner; j++) s[j % 4] += row[j];\n"
        "  y[i] = (s[0] + s[1]) + (s[2] + s[3]);"
    ),
    "pairs first": serial(
        "  float s = 0;\n  int j = 0;\n  for (; j + 1 < inner; j += 2) s += row[j] + row[j + 1];\n"
        "  if (j < inner) s += row[j];\n  y[i] = s;"
    ),
    "recomputed, the larger half kept": serial(
        "  float a = 0, b = 0;\n  for (int j = 0; j < inner; j++) a += row[j];\n"
        "  for (int j = 0; j < inner; j++) b += row[j];\n  y[i] = 0.5f * a + 0.5f * b;"
    ),
    "positive and negative numbers apart": serial(
        "  float up = 0, down = 0;\n  for (int j = 0; j < inner; j++) (row[j] > 0 ? up : down) += row[j];\n"
        "  y[i] = up + down;"
    ),
    "fused multiply-add by one": serial(
        "  float s = 0;\n  for (int j = 0; j < inner; j++) s = fmaf(row[j], 1.0f, s);\n  y[i] = s;"
    ),
    "a tree in shared memory": {
        "device": BLOCK_TREE,
        "run": "  if (rows) k<<<rows, 128, 0, stream>>>(x, y, inner);\n",
    },
    "a warp for each row": {
        "device": WARP
        + """__global__ void k(const float* x, float* y, int inner) {
  float sum = 0;
  for (int j = threadIdx.x; j < inner; j += 32) sum += x[blockIdx.x * inner + j];
  sum = warp_sum(sum);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
""",
        "run": "  if (rows) k<<<rows, 32, 0, stream>>>(x, y, inner);\n",
    },
    "butterfly shuffles": {
        "device": """__global__ void k(const float* x, float* y, int inner) {
  float sum = 0;
  for (int j = threadIdx.x; j < inner; j += 32) sum += x[blockIdx.x * inner + j];
  for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (threadIdx.x == 31) y[blockIdx.x] = sum;
}
""",
        "run": "  if (rows) k<<<rows, 32, 0, stream>>>(x, y, inner);\n",
    },
    "warps, then shared memory": {
        "device": WARP
        + """__global__ void k(const float* x, float* y, int inner) {
  __shared__ float parts[4];
  float sum = 0;
  for (int j = threadIdx.x; j < inner; j += 128) sum += x[blockIdx.x * inner + j];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = (parts[0] + parts[1]) + (parts[2] + parts[3]);
}
""",
        "run": "  if (rows) k<<<rows, 128, 0, stream>>>(x, y, inner);\n",
    },
    "cooperative groups": {
        "device": """namespace cg = cooperative_groups;
__global__ void k(const float* x, float* y, int inner) {
  cg::thread_block_tile<32> tile = cg::tiled_partition<32>(cg::this_thread_block());
  float sum = 0;
  for (int j = tile.thread_rank(); j < inner; j += 32) sum += x[blockIdx.x * inner + j];
  for (int d = 16; d > 0; d >>= 1) sum += tile.shfl_down(sum, d);
  if (tile.thread_rank() == 0) y[blockIdx.x] = sum;
}
""",
        "run": "  if (rows) k<<<rows, 32, 0, stream>>>(x, y, inner);\n",
    },
    "two passes through a workspace": {
        "device": """__global__ void first(const float* x, float* t, int rows, int inner) {
  int i = blockIdx.x, part = threadIdx.x;
  float sum = 0;
  for (int j = part; j < inner; j += 8) sum += x[i * inner + j];
  t[i * 8 + part] = sum;
}
__global__ void second(const float* t, float* y, int rows) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  float sum = 0;
  for (int p = 0; p < 8; p++) sum += t[i * 8 + p];
  y[i] = sum;
}
""",
        "sizes": "  *workspace = c->in[0].shape[0] * 8 * 4;\n",
        "run": "  float* t = (float*)c->workspace;\n  if (rows) first<<<rows, 8, 0, stream>>>(x, t, rows, inner);\n"
        "  second<<<(rows + 31) / 32, 32, 0, stream>>>(t, y, rows);\n",
    },
    "atomic adds onto zeros": {
        "device": """__global__ void k(const float* x, float* y, int rows, int inner) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * inner) atomicAdd(y + i / inner, x[i]);
}
""",
        "run": "  cudaMemsetAsync(y, 0, rows * sizeof(float), stream);\n"
        "  k<<<(n + 63) / 64, 64, 0, stream>>>(x, y, rows, inner);\n",
    },
    "a persistent loop over rows": {
        "device": WARP
        + """__global__ void k(const float* x, float* y, int rows, int inner) {
  for (int i = blockIdx.x; i < rows; i += gridDim.x) {
    float sum = 0;
    for (int j = threadIdx.x; j < inner; j += 32) sum += x[i * inner + j];
    sum = warp_sum(sum);
    if (threadIdx.x == 0) y[i] = sum;
  }
}
""",
        "run": "  k<<<4, 32, 0, stream>>>(x, y, rows, inner);\n",
    },
    "a transposed tile": {
        "device": """__global__ void k(const float* x, float* y, int rows, int inner) {
  __shared__ float tile[16][17];
  int top = blockIdx.x * 16;
  float sum = 0;
  for (int left = 0; left < inner; left += 16) {
    int i = top + threadIdx.y, j = left + threadIdx.x;
    tile[threadIdx.x][threadIdx.y] = i < rows && j < inner ? x[i * inner + j] : 0.0f;
    __syncthreads();
    if (threadIdx.y == 0)
      for (int u = 0; u < 16; u++) sum += tile[u][threadIdx.x];
    __syncthreads();
  }
  if (threadIdx.y == 0 && top + threadIdx.x < rows) y[top + threadIdx.x] = sum;
}
""",
        "run": "  k<<<(rows + 15) / 16, dim3(16, 16), 0, stream>>>(x, y, rows, inner);\n",
    },
    "double buffering": {
        "device": """__global__ void k(const float* x, float* y, int rows, int inner) {
  __shared__ float ring[2][32];
  const float* row = x + (size_t)blockIdx.x * inner;
  float sum = 0;
  ring[0][threadIdx.x] = (int)threadIdx.x < inner ? row[threadIdx.x] : 0.0f;
  __syncthreads();
  for (int start = 0, turn = 0; start < inner; start += 32, turn ^= 1) {
    int next = start + 32 + threadIdx.x;
    ring[turn ^ 1][threadIdx.x] = next < inner ? row[next] : 0.0f;
    if (threadIdx.x == 0)
      for (int u = 0; u < 32; u++) sum += ring[turn][u];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
""",
        "run": "  if (rows) k<<<rows, 32, 0, stream>>>(x, y, rows, inner);\n",
    },
    "a product with ones by cuBLAS": {
        "device": """__global__ void ones(float* t, int inner) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < inner) t[j] = 1.0f;
}
""",
        "sizes": "  *workspace = c->in[0].shape[1] * 4;\n",
        "run": """  float* t = (float*)c->workspace;
  const float one = 1.0f, zero = 0.0f;
  ones<<<(inner + 31) / 32, 32, 0, stream>>>(t, inner);
  cublasHandle_t handle;
  cublasCreate(&handle);
  cublasSetStream(handle, stream);
  cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, rows, 1, inner, &one, x, inner, t, inner, &zero, y, rows);
  cudaStreamSynchronize(stream);
  cublasDestroy(handle);
""",
    },
}
