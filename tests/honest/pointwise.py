# ruff: noqa: E501 - CUDA text, in its own width
"""y = tanh(x) * 2 + x, element by element, in twenty-odd ways."""

F = "__device__ float f(float v) { return tanhf(v) * 2.0f + v; }\n"
PLAIN = (
    F
    + """__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = f(x[i]);
}
"""
)
LAUNCH = "  if (n) k<<<(n + 127) / 128, 128, 0, stream>>>(x, y, n);\n"
STRIDE = (
    F
    + """__global__ void k(const float* x, float* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = f(x[i]);
}
"""
)
HALVES = "  int half = n / 2;\n"

POINTWISE: dict[str, dict[str, str]] = {
    "a thread for each element": {"device": PLAIN, "run": LAUNCH},
    "a grid-stride loop": {"device": STRIDE, "run": "  k<<<3, 64, 0, stream>>>(x, y, n);\n"},
    "a single persistent block": {"device": STRIDE, "run": "  k<<<1, 256, 0, stream>>>(x, y, n);\n"},
    "blocks of thirty-three threads": {"device": STRIDE, "run": "  k<<<5, 33, 0, stream>>>(x, y, n);\n"},
    "a two-dimensional grid": {
        "device": F
        + """__global__ void k(const float* x, float* y, int rows, int inner) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows && j < inner) y[i * inner + j] = f(x[i * inner + j]);
}
""",
        "run": "  k<<<dim3((inner + 15) / 16, (rows + 7) / 8), dim3(16, 8), 0, stream>>>(x, y, rows, inner);\n",
    },
    "elements from the end to the start": {
        "device": F
        + """__global__ void k(const float* x, float* y, int n) {
  int i = n - 1 - (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= 0) y[i] = f(x[i]);
}
""",
        "run": LAUNCH,
    },
    "two kernels, the output as scratch": {
        "device": """__global__ void first(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = tanhf(x[i]);
}
__global__ void second(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = y[i] * 2.0f + x[i];
}
""",
        "run": "  int g = (n + 63) / 64;\n  first<<<g, 64, 0, stream>>>(x, y, n);\n"
        "  second<<<g, 64, 0, stream>>>(x, y, n);\n",
    },
    "a copy that is then changed in place": {
        "device": F
        + """__global__ void k(float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = f(y[i]);
}
""",
        "run": "  cudaMemcpyAsync(y, x, n * sizeof(float), cudaMemcpyDeviceToDevice, stream);\n"
        "  k<<<(n + 63) / 64, 64, 0, stream>>>(y, n);\n",
    },
    "a workspace between two kernels": {
        "device": """__global__ void first(const float* x, float* t, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) t[i] = 2.0f * tanhf(x[i]);
}
__global__ void second(const float* x, const float* t, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = t[i] + x[i];
}
""",
        "sizes": "  *workspace = c->in[0].numel * 4;\n",
        "run": "  float* t = (float*)c->workspace;\n  int g = (n + 63) / 64;\n"
        "  first<<<g, 64, 0, stream>>>(x, t, n);\n  second<<<g, 64, 0, stream>>>(x, t, y, n);\n",
    },
    "a side stream, joined by events": {
        "device": PLAIN,
        "run": HALVES
        + """  static cudaStream_t side;
  static cudaEvent_t fork, join;
  if (!side) {
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  }
  cudaEventRecord(fork, stream);
  cudaStreamWaitEvent(side, fork, 0);
  if (half) k<<<(half + 63) / 64, 64, 0, side>>>(x, y, half);
  if (n - half) k<<<(n - half + 63) / 64, 64, 0, stream>>>(x + half, y + half, n - half);
  cudaEventRecord(join, side);
  cudaStreamWaitEvent(stream, join, 0);
""",
    },
    "two side streams, synchronised on the host": {
        "device": PLAIN,
        "run": HALVES
        + """  cudaStream_t s[2];
  cudaStreamSynchronize(stream);
  for (int i = 0; i < 2; i++) cudaStreamCreate(&s[i]);
  if (half) k<<<(half + 63) / 64, 64, 0, s[0]>>>(x, y, half);
  if (n - half) k<<<(n - half + 63) / 64, 64, 0, s[1]>>>(x + half, y + half, n - half);
  for (int i = 0; i < 2; i++) { cudaStreamSynchronize(s[i]); cudaStreamDestroy(s[i]); }
""",
    },
    "a graph of its own, captured in each call": {
        "device": PLAIN,
        "run": """  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  k<<<(n + 63) / 64, 64, 0, stream>>>(x, y, n);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphLaunch(exec, stream);
  cudaStreamSynchronize(stream);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
""",
    },
    "its own allocation, freed again": {
        "device": PLAIN,
        "run": """  float* t;
  cudaMalloc(&t, n * sizeof(float) + 4);
  k<<<(n + 63) / 64, 64, 0, stream>>>(x, t, n);
  cudaMemcpyAsync(y, t, n * sizeof(float), cudaMemcpyDeviceToDevice, stream);
  cudaStreamSynchronize(stream);
  cudaFree(t);
""",
    },
    "an allocation kept between calls": {
        "device": PLAIN,
        "run": """  static float* t;
  static int room;
  if (room < n) {
    cudaFree(t);
    cudaMalloc(&t, n * sizeof(float));
    room = n;
  }
  k<<<(n + 63) / 64, 64, 0, stream>>>(x, t, n);
  cudaMemcpyAsync(y, t, n * sizeof(float), cudaMemcpyDeviceToDevice, stream);
""",
    },
    "printf left in for debugging": {
        "device": F
        + """__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) printf("first input %f\\n", x[0]);
  if (i < n) y[i] = f(x[i]);
}
""",
        "run": LAUNCH + '  fprintf(stderr, "launched %d elements\\n", n);\n',
    },
    "an error macro": {
        "device": PLAIN
        + "#define CHECKED(call) do { if ((call) != cudaSuccess) return STITCH_CUDA_ERROR; } while (0)\n",
        "run": "  CHECKED(cudaPeekAtLastError());\n" + LAUNCH + "  CHECKED(cudaGetLastError());\n",
    },
    "an early return for nothing to do": {
        "device": PLAIN,
        "run": "  if (rows == 0 || inner == 0) return STITCH_OK;\n" + LAUNCH,
    },
    "the exponential instead of tanh": {
        "device": """__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i], e = expm1f(-2.0f * fabsf(v)), t = -e / (e + 2.0f);
  y[i] = copysignf(t, v) * 2.0f + v;
}
""",
        "run": LAUNCH,
    },
    "double precision inside": {
        "device": """__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (float)(tanh((double)x[i]) * 2.0 + (double)x[i]);
}
""",
        "run": LAUNCH,
    },
    "four elements a thread, unrolled": {
        "device": F
        + """__global__ void k(const float* x, float* y, int n) {
  int base = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
#pragma unroll
  for (int u = 0; u < 4; u++)
    if (base + u < n) y[base + u] = f(x[base + u]);
}
""",
        "run": "  k<<<(n + 255) / 256, 64, 0, stream>>>(x, y, n);\n",
    },
    "float4 with a scalar tail": {
        "device": F
        + """__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, whole = n / 4;
  if (i < whole) {
    float4 v = ((const float4*)x)[i];
    ((float4*)y)[i] = make_float4(f(v.x), f(v.y), f(v.z), f(v.w));
  }
  if (i < n - 4 * whole) y[4 * whole + i] = f(x[4 * whole + i]);
}
""",
        "run": "  k<<<(n / 4 + 64) / 64, 64, 0, stream>>>(x, y, n);\n",
    },
    "through shared memory": {
        "device": F
        + """__global__ void k(const float* x, float* y, int n) {
  __shared__ float tile[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (i < n) y[i] = f(tile[threadIdx.x]);
}
""",
        "run": LAUNCH,
    },
    "dynamic shared memory": {
        "device": F
        + """__global__ void k(const float* x, float* y, int n) {
  extern __shared__ float room[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  room[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (i < n) y[i] = f(room[threadIdx.x]);
}
""",
        "run": "  k<<<(n + 63) / 64, 64, 64 * sizeof(float), stream>>>(x, y, n);\n",
    },
    "a template over the block": {
        "device": F
        + """template <int BLOCK>
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) y[i] = f(x[i]);
}
""",
        "run": "  if (n < 64) k<32><<<(n + 31) / 32, 32, 0, stream>>>(x, y, n);\n"
        "  else k<128><<<(n + 127) / 128, 128, 0, stream>>>(x, y, n);\n",
    },
    "a launch for each row": {
        "device": PLAIN,
        "run": "  for (int i = 0; i < rows; i++)\n"
        "    k<<<(inner + 31) / 32, 32, 0, stream>>>(x + i * inner, y + i * inner, inner);\n",
    },
    "constants in device memory": {
        "device": """__device__ const float gains[2] = {2.0f, 1.0f};
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = tanhf(x[i]) * gains[0] + x[i] * gains[1];
}
""",
        "run": LAUNCH,
    },
}
