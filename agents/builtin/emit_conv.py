"""Convolutions with fused epilogue: an implicit matrix product in tiles, or one result for each thread."""

from functools import partial

from stitch_tui.agents.builtin import c_scalar, emit
from stitch_tui.agents.builtin.emit_gemm import MULTIPROCESSORS
from stitch_tui.agents.builtin.epilogue import epilogue
from stitch_tui.agents.builtin.ir import ConvRoot, Subtask, Tune
from stitch_tui.agents.builtin.tile_product import pipeline
from stitch_tui.tools.graph import Graph

TILED = (
    "Implicit matrix product: {0} channels x {1} positions a block, {2} products deep, double-buffered in "
    "shared memory; 256 threads with {3}x{4} results each in registers."
)
DIRECT = "Each thread computes one result and walks over its taps; neighbours share them in the caches."
TILES = ((128, 128, 8), (64, 128, 16), (64, 64, 16), (32, 128, 16), (32, 32, 32))
FEW = 16
"""Channels in a group below which tiles would be mostly empty."""


def strategies(subtask: Subtask) -> list[Tune]:
    """Direct first where groups have few channels; else tiles, those that fill the device first."""
    root = subtask.root
    assert isinstance(root, ConvRoot)
    m, n, _ = root.extents

    def rank(sizes: tuple[int, int, int]) -> tuple[bool, float, int]:
        tiles = -(-m // sizes[0]) * -(-n // sizes[1])
        waste = tiles * sizes[0] * sizes[1] / max(m * n, 1)
        return tiles * root.groups < MULTIPROCESSORS, round(waste, 1), -sizes[0] * sizes[1]

    tiled = [tile(*sizes) for sizes in sorted(TILES, key=rank)]
    direct = Tune("direct", DIRECT, {"THREADS": 256})
    if m < FEW // 2:
        return [direct, tiled[0]]
    return [*tiled, direct] if m < FEW else tiled


def tile(m: int, n: int, k: int) -> Tune:
    """Tiles of `m` channels x `n` positions, `k` deep."""
    sizes = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": 8}
    return Tune(f"tile-{m}x{n}x{k}", TILED.format(m, n, k, m // 16, n // 16), sizes)


def source(graph: Graph, subtask: Subtask, tune: Tune, bound: str) -> str:
    """The `.cu` text."""
    root, direct = subtask.root, "BLOCK_M" not in tune.constants
    assert isinstance(root, ConvRoot)
    tensors = emit.border(graph, subtask)
    parts = [
        emit.opening(subtask, tensors, tune, bound),
        emit.constants(subtask.rank, max(len(subtask.accesses), 1)),
        _constants(subtask, root),
        emit.template("scalar"),
        emit.template("space"),
        _PROBLEM if direct else emit.template("gemm"),
        emit.template("conv"),
        _kernel(subtask, root, tensors, direct),
        emit.call_check(tensors),
        _run(subtask, root, tensors, direct),
    ]
    return "\n\n".join(parts)


_PROBLEM = """\
struct Problem {
  int64_t m, n, k;  // result channels of a group, positions, products in a sum
};"""


def _constants(subtask: Subtask, root: ConvRoot) -> str:
    taps = 1
    for extent in root.kernel:
        taps *= extent
    lines = [
        f"constexpr int SPATIAL = {root.spatial};  // dimensions that the kernel slides along",
        f"constexpr int CHANNEL = {subtask.rank - root.spatial - 1};  // the result's dimension of channels",
        f"constexpr int GROUPS = {root.groups}, TAPS = {taps};",
        f"constexpr bool TRANSPOSED = {str(root.transposed).lower()};",
        emit.table("kernel_of", root.kernel),
        emit.table("stride_of", root.stride),
        emit.table("dilation_of", root.dilation),
        emit.table("padding_of", [before for before, _ in root.padding]),
        emit.table("padding_behind", [behind for _, behind in root.padding]),
        emit.table("output_padding_of", root.output_padding),
    ]
    return "\n".join(lines)


def _kernel(subtask: Subtask, root: ConvRoot, tensors: emit.Border, direct: bool) -> str:
    own = [
        *("Space space", "Conv p"),
        f"const {c_scalar.C_TYPE[root.x.dtype]}* __restrict__ x",
        f"const {c_scalar.C_TYPE[root.weight.dtype]}* __restrict__ w",
    ]
    text = emit.kernel(_DIRECT if direct else _TILED, subtask, tensors, own)
    text = text.replace("@X_VALUE@", c_scalar.widened(root.x.dtype, "x[group.x + place]"))
    text = text.replace("@W_VALUE@", c_scalar.widened(root.weight.dtype, "w[group.w + weight]"))
    text = text.replace("@PRODUCT@", pipeline("w", "x", "int(k0)"))
    element = partial(_element, subtask, tensors)
    lines = epilogue(subtask, "    " if direct else "        ", element, root="product")
    return text.replace("@EPILOGUE@", "\n".join(lines))


_TILED = """\
__global__ void __launch_bounds__(THREADS) @NAME@(
    @PARAMETERS@) {
  static_assert(THREADS % BLOCK_N == 0, "a thread fetches inputs for one position");
  __shared__ __align__(16) float w_tile[2][BLOCK_K][BLOCK_M + PAD];
  __shared__ __align__(16) float x_tile[2][BLOCK_K][BLOCK_N + PAD];
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  for (int64_t index = blockIdx.x; index < p.tiles; index += gridDim.x) {
    const Tile tile = tile_at(p, index);
    const Group group = group_at(p, tile.batch);
    const int mine = threadIdx.x % BLOCK_N, mine_k = threadIdx.x / BLOCK_N;
    const bool live = tile.n + mine < p.n;
    const Position position = position_at(p, live ? tile.n + mine : 0);
    __syncthreads();  // the previous tile is read no more

    float w_next[A_ITEMS], x_next[B_ITEMS];
    const auto fetch = [&](int k0) {
#pragma unroll
      for (int i = 0; i < A_ITEMS; ++i) {
        const Spot s = spot(threadIdx.x + i * THREADS, BLOCK_M, true);
        const int64_t weight = weight_at(p, tile.m + s.x, tap_at(k0 + s.k));
        w_next[i] = tile.m + s.x < p.m && k0 + s.k < p.k ? @W_VALUE@ : 0.0f;
      }
#pragma unroll
      for (int i = 0; i < B_ITEMS; ++i) {
        const int k = k0 + mine_k + i * (THREADS / BLOCK_N);
        const int64_t place = live && k < p.k ? input_at(p, position, tap_at(k)) : -1;
        x_next[i] = place >= 0 ? @X_VALUE@ : 0.0f;
      }
    };
    const auto keep = [&](int buffer) {
#pragma unroll
      for (int i = 0; i < A_ITEMS; ++i) {
        const Spot s = spot(threadIdx.x + i * THREADS, BLOCK_M, true);
        w_tile[buffer][s.k][s.x] = w_next[i];
      }
#pragma unroll
      for (int i = 0; i < B_ITEMS; ++i) x_tile[buffer][mine_k + i * (THREADS / BLOCK_N)][mine] = x_next[i];
    };

@PRODUCT@
#pragma unroll
    for (int j = 0; j < THREAD_N; ++j) {
      const int64_t n = tile.n + place_of<THREAD_N>(tx, j);
      if (n >= p.n) continue;
      int64_t at[OPERANDS] = {};
      locate(space, 0, p.dims, n, at);
#pragma unroll
      for (int i = 0; i < THREAD_M; ++i) {
        const int64_t m = tile.m + place_of<THREAD_M>(ty, i);
        if (m >= p.m) continue;
        const int64_t channel = tile.batch * p.m + m;
        const float product = sum[i][j];
@EPILOGUE@
      }
    }
  }
}"""

_DIRECT = """\
__global__ void __launch_bounds__(THREADS) @NAME@(
    @PARAMETERS@) {
  const int64_t step = (int64_t)gridDim.x * THREADS, count = p.n * p.channels;
  for (int64_t index = (int64_t)blockIdx.x * THREADS + threadIdx.x; index < count; index += step) {
    // positions inside an image are the fastest, then channels, then images
    const int64_t inside = index % p.inside, outer = index / p.inside;
    const int64_t channel = outer % p.channels, n = outer / p.channels * p.inside + inside;
    const Position position = position_at(p, n);
    const Group group = group_at(p, channel / p.m);
    float product = 0.0f;
    for (int k = 0; k < p.k; k += TAPS) {
#pragma unroll 9
      for (int t = 0; t < TAPS; ++t) {
        Tap tap = tap_at(t);
        tap.channel = k / TAPS;
        const int64_t place = input_at(p, position, tap);
        const int64_t weight = weight_at(p, channel % p.m, tap);
        if (place >= 0) product += @X_VALUE@ * @W_VALUE@;
      }
    }
    int64_t at[OPERANDS] = {};
    locate(space, 0, p.dims, n, at);
@EPILOGUE@
  }
}"""


def _element(subtask: Subtask, tensors: emit.Border, number: int) -> str:
    name = emit.operand_name(tensors, subtask.accesses[number], number)
    return f"{name}[at[{number}] + channel * space.inner[{number}]]"


def _run(subtask: Subtask, root: ConvRoot, tensors: emit.Border, direct: bool) -> str:
    name, accesses = emit.kernel_name(subtask), subtask.accesses
    x, w = tensors.tensor(root.x).where, tensors.tensor(root.weight).where
    arguments = ", ".join(
        [
            *("space", "p", emit.pointer(root.x, tensors), emit.pointer(root.weight, tensors)),
            *emit.arguments(tensors, accesses),
        ]
    )
    body = [
        "  Space space = empty_space();",
        "  Conv p = {};",
        f"  if (!shape_conv(p, space, {x}, {w})) return STITCH_UNSUPPORTED_SHAPE;",
        *emit.placing(tensors, accesses, channel="CHANNEL"),
        "  const int64_t count = points(space, 0, RANK);",
        *emit.covering(tensors, accesses, "count"),
        "  if (count == 0) return STITCH_OK;",
        *(_DIRECT_SIZES if direct else _TILED_SIZES),
        "  for (int o = 0; o < OPERANDS; ++o) space.inner[o] = space.stride[o][CHANNEL];",
        "  drop_dimension(space, CHANNEL);",
        "  p.dims = coalesce(space, 0, RANK - 1);",
    ]
    blocks = "(count + THREADS - 1) / THREADS" if direct else "p.tiles"
    body.append(f"  {name}<<<grid_for({blocks}), THREADS, 0, stream>>>({arguments});")
    return emit.main_function(body)


_DIRECT_SIZES = ["  p.inside = points(space, RANK - SPATIAL, SPATIAL);"]
_TILED_SIZES = [
    "  p.tiles_m = (p.m + BLOCK_M - 1) / BLOCK_M;",
    "  p.tiles_n = (p.n + BLOCK_N - 1) / BLOCK_N;",
    "  p.tiles = GROUPS * p.tiles_m * p.tiles_n;",
]
