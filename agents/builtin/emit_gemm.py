"""Matrix products with fused epilogue: shared-memory tiles, register blocking, double buffering."""

from functools import partial

from stitch_tui.agents.builtin import c_scalar, emit
from stitch_tui.agents.builtin.epilogue import epilogue
from stitch_tui.agents.builtin.ir import GemmRoot, Subtask, Tune
from stitch_tui.agents.builtin.tile_product import pipeline
from stitch_tui.tools.graph import Graph

SENTENCE = (
    "Tiles of {0}x{1} results, {2} deep, double-buffered in shared memory; "
    "256 threads with {3}x{4} results each in registers."
)
TILES = ((128, 128, 8), (64, 64, 16), (128, 64, 16), (32, 32, 32))
MULTIPROCESSORS = 132  # of an H200; only orders the strategies


def strategies(subtask: Subtask) -> list[Tune]:
    """Every tile size; first the largest tiles that still give each multiprocessor one."""
    assert isinstance(subtask.root, GemmRoot)
    m, n, _ = subtask.root.extents

    def idle(sizes: tuple[int, int, int]) -> bool:
        return -(-m // sizes[0]) * -(-n // sizes[1]) < MULTIPROCESSORS

    ordered = sorted(TILES, key=lambda t: (idle(t), t[0] * t[1] if idle(t) else -t[0] * t[1]))
    return [tile(*sizes) for sizes in ordered]


def tile(m: int, n: int, k: int) -> Tune:
    """Tiles of `m` x `n` results, `k` deep."""
    sizes = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": 8}
    return Tune(f"tile-{m}x{n}x{k}", SENTENCE.format(m, n, k, m // 16, n // 16), sizes)


def source(graph: Graph, subtask: Subtask, tune: Tune, bound: str) -> str:
    """The `.cu` text."""
    tensors = emit.border(graph, subtask)
    parts = [
        emit.opening(subtask, tensors, tune, bound),
        emit.constants(subtask.rank, len(subtask.accesses) + 2),
        emit.template("scalar"),
        emit.template("space"),
        emit.template("gemm"),
        _kernel(subtask, tensors),
        emit.call_check(tensors),
        _run(subtask, tensors),
    ]
    return "\n\n".join(parts)


def _kernel(subtask: Subtask, tensors: emit.Border) -> str:
    root = subtask.root
    assert isinstance(root, GemmRoot)
    own = [
        *("Space space", "Problem p"),
        f"const {c_scalar.C_TYPE[root.a.dtype]}* __restrict__ a",
        f"const {c_scalar.C_TYPE[root.b.dtype]}* __restrict__ b",
    ]
    text = emit.kernel(_MAIN_LOOP, subtask, tensors, own)
    text = text.replace("@A_VALUE@", c_scalar.widened(root.a.dtype, "a[place]"))
    text = text.replace("@B_VALUE@", c_scalar.widened(root.b.dtype, "b[place]"))
    text = text.replace("@PRODUCT@", pipeline("a", "b"))
    lines = epilogue(subtask, "        ", partial(_element, subtask, tensors), root="sum[i][j]")
    return text.replace("@EPILOGUE@", "\n".join(lines))


_MAIN_LOOP = """\
__global__ void __launch_bounds__(THREADS) @NAME@(
    @PARAMETERS@) {
  __shared__ __align__(16) float a_tile[2][BLOCK_K][BLOCK_M + PAD];
  __shared__ __align__(16) float b_tile[2][BLOCK_K][BLOCK_N + PAD];
  __shared__ int64_t a_row[BLOCK_M];
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const bool a_along_k = p.a_k == 1, b_along_k = p.b_k == 1;
  const int64_t b_n = space.inner[1];
  for (int64_t index = blockIdx.x; index < p.tiles; index += gridDim.x) {
    const Tile tile = tile_at(p, index);
    int64_t base[OPERANDS] = {};
    locate(space, 0, p.batch_dims, tile.batch, base);
    __syncthreads();  // the previous tile is read no more
    for (int i = threadIdx.x; i < BLOCK_M; i += THREADS) {
      int64_t at[OPERANDS] = {};
      if (tile.m + i < p.m) locate(space, p.batch_dims, p.row_dims, tile.m + i, at);
      a_row[i] = base[0] + at[0];
    }
    __syncthreads();

    float a_next[A_ITEMS], b_next[B_ITEMS];
    const auto fetch = [&](int64_t k0) {
#pragma unroll
      for (int i = 0; i < A_ITEMS; ++i) {
        const Spot s = spot(threadIdx.x + i * THREADS, BLOCK_M, a_along_k);
        const int64_t place = a_row[s.x] + (k0 + s.k) * p.a_k;
        a_next[i] = tile.m + s.x < p.m && k0 + s.k < p.k ? @A_VALUE@ : 0.0f;
      }
#pragma unroll
      for (int i = 0; i < B_ITEMS; ++i) {
        const Spot s = spot(threadIdx.x + i * THREADS, BLOCK_N, b_along_k);
        const int64_t place = base[1] + (tile.n + s.x) * b_n + (k0 + s.k) * p.b_k;
        b_next[i] = tile.n + s.x < p.n && k0 + s.k < p.k ? @B_VALUE@ : 0.0f;
      }
    };
    const auto keep = [&](int buffer) {
#pragma unroll
      for (int i = 0; i < A_ITEMS; ++i) {
        const Spot s = spot(threadIdx.x + i * THREADS, BLOCK_M, a_along_k);
        a_tile[buffer][s.k][s.x] = a_next[i];
      }
#pragma unroll
      for (int i = 0; i < B_ITEMS; ++i) {
        const Spot s = spot(threadIdx.x + i * THREADS, BLOCK_N, b_along_k);
        b_tile[buffer][s.k][s.x] = b_next[i];
      }
    };

@PRODUCT@
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i) {
      const int64_t m = tile.m + place_of<THREAD_M>(ty, i);
      if (m >= p.m) continue;
      int64_t at[OPERANDS] = {};
      locate(space, p.batch_dims, p.row_dims, m, at);
#pragma unroll
      for (int o = 0; o < OPERANDS; ++o) at[o] += base[o];
#pragma unroll
      for (int j = 0; j < THREAD_N; ++j) {
        const int64_t n = tile.n + place_of<THREAD_N>(tx, j);
        if (n >= p.n) continue;
@EPILOGUE@
      }
    }
  }
}"""


def _element(subtask: Subtask, tensors: emit.Border, number: int) -> str:
    name = emit.operand_name(tensors, subtask.accesses[number], number)
    return f"{name}[at[{number + 2}] + n * space.inner[{number + 2}]]"


def _run(subtask: Subtask, tensors: emit.Border) -> str:
    root, accesses = subtask.root, subtask.accesses
    assert isinstance(root, GemmRoot)
    arguments = ", ".join(
        [
            "space",
            "p",
            emit.pointer(root.a, tensors),
            emit.pointer(root.b, tensors),
            *emit.arguments(tensors, accesses),
        ]
    )
    batch_dims = subtask.rank - 2 if root.batched else 0
    row_dims = subtask.rank - 1 - batch_dims
    body = [
        *views(root, tensors),
        "  const int last = RANK - 1;",
        "  Space space = empty_space();",
        "  widen(space, rows_of_a);",
        "  widen(space, columns_of_b);",
        *emit.widening(tensors, accesses),
        "  if (!place(space, 0, rows_of_a)) return STITCH_UNSUPPORTED_SHAPE;",
        "  if (!place(space, 1, columns_of_b)) return STITCH_UNSUPPORTED_SHAPE;",
        *emit.placing(tensors, accesses, first=2),
        "  const int64_t count = points(space, 0, RANK);",
        *emit.covering(tensors, accesses, "count"),
        "  if (count == 0) return STITCH_OK;",
        "  Problem p = {};",
        "  p.n = space.extent[last];",
        f"  p.m = points(space, {batch_dims}, {row_dims});",
        "  p.k = a_view.shape[a_view.ndim - 1];",
        "  p.a_k = a_view.strides[a_view.ndim - 1];",
        "  p.b_k = b_view.strides[b_view.ndim - 2];",
        "  p.tiles_m = (p.m + BLOCK_M - 1) / BLOCK_M;",
        "  p.tiles_n = (p.n + BLOCK_N - 1) / BLOCK_N;",
        f"  p.tiles = points(space, 0, {batch_dims}) * p.tiles_m * p.tiles_n;",
        "  for (int o = 0; o < OPERANDS; ++o) space.inner[o] = space.stride[o][last];",
        f"  p.batch_dims = coalesce(space, 0, {batch_dims});",
        f"  p.row_dims = coalesce(space, p.batch_dims, {row_dims});",
        f"  {emit.kernel_name(subtask)}<<<grid_for(p.tiles), THREADS, 0, stream>>>({arguments});",
    ]
    return "\n\n".join([VIEW, emit.main_function(body)])


VIEW = """\
// A tensor with its last two dimensions swapped, or with one of them made 1 so that it repeats.
struct View : stitch_tensor {
  int64_t extents[RANK + 1], steps[RANK + 1];
  View(const stitch_tensor& t, bool transposed) : stitch_tensor(t) {
    for (int d = 0; d < ndim; ++d) {
      const int from = !transposed || d < ndim - 2 ? d : 2 * ndim - 3 - d;
      extents[d] = t.shape[from], steps[d] = t.strides[from];
    }
    shape = extents, strides = steps;
  }
  View(const View& other) : View(other, false) {}
  View repeated_along(int d) const {
    View v(*this, false);
    v.extents[d] = 1;
    return v;
  }
};"""


def views(root: GemmRoot, tensors: emit.Border, refusal: str = "STITCH_UNSUPPORTED_SHAPE") -> list[str]:
    """Host lines that make both operands views with the sum along their inner dimensions."""
    a, b = tensors.tensor(root.a).where, tensors.tensor(root.b).where
    return [
        f"  const View a_view({a}, {str(root.a.transposed).lower()});",
        f"  const View b_view({b}, {str(root.b.transposed).lower()});",
        "  const View rows_of_a = a_view.repeated_along(a_view.ndim - 1);",
        "  const View columns_of_b = b_view.repeated_along(b_view.ndim - 2);",
        "  if (a_view.shape[a_view.ndim - 1] != b_view.shape[b_view.ndim - 2])",
        f"    return {refusal};",
    ]
