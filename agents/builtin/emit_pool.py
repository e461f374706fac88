"""Pooling: the maximum or the mean over a window, with pointwise work on the result."""

import math
from functools import partial

from stitch_tui.agents.builtin import c_scalar, emit
from stitch_tui.agents.builtin.epilogue import epilogue
from stitch_tui.agents.builtin.ir import PoolRoot, Subtask, Tune
from stitch_tui.tools.graph import Graph

MOST_UNROLLED = 27
"""Elements of a window that is written out, so that all its reads are in flight at once."""


def strategies(subtask: Subtask) -> list[Tune]:
    """Each thread computes one result at a time; blocks of 256 first."""
    return [
        Tune(
            name,
            f"Each thread looks through one window at a time; blocks of {threads}.",
            {"THREADS": threads},
        )
        for name, threads in (("window-per-thread", 256), ("small-blocks", 128), ("large-blocks", 512))
    ]


def source(graph: Graph, subtask: Subtask, tune: Tune, bound: str) -> str:
    """The `.cu` text."""
    root = subtask.root
    assert isinstance(root, PoolRoot)
    tensors = emit.border(graph, subtask)
    parts = [
        emit.opening(subtask, tensors, tune, bound),
        emit.constants(subtask.rank, len(subtask.accesses)),
        _geometry(root),
        emit.template("scalar"),
        emit.template("space"),
        emit.template("pool"),
        _kernel(subtask, tensors, root),
        emit.call_check(tensors),
        _run(subtask, tensors, root),
    ]
    return "\n\n".join(parts)


def _geometry(root: PoolRoot) -> str:
    """Named constants of the window, always along three dimensions."""
    missing = 3 - root.dims
    sides = {
        "size_of": (1,) * missing + (root.sizes or (1,) * root.dims),
        "step_of": (1,) * missing + root.steps,
        "padding_of": (0,) * missing + root.padding,
        "dilation_of": (1,) * missing + root.dilation,
    }
    lines = [f"constexpr int DIMS = {root.dims};  // of a window"]
    lines += [emit.table(name, numbers) for name, numbers in sides.items()]
    flags = {"ADAPTIVE": root.adaptive, "CEIL": root.ceil, "COUNT_PADDING": root.count_padding}
    lines += [f"constexpr bool {name} = {str(flag).lower()};" for name, flag in flags.items()]
    fixed = math.prod(root.sizes) if root.sizes else 0
    inside = not (root.ceil or any(root.padding))
    lines += [
        f"constexpr int WINDOW = {fixed};  // elements of each window, if all have as many",
        f"constexpr bool UNROLLED = {str(0 < fixed <= MOST_UNROLLED).lower()};",
        f"constexpr bool INSIDE = {str(inside).lower()};  // no window reaches past the input",
    ]
    return "\n".join(
        [*lines, f"[[maybe_unused]] constexpr int DIVISOR = {root.divisor};  // 0: the size of the window"]
    )


def _kernel(subtask: Subtask, tensors: emit.Border, root: PoolRoot) -> str:
    operand = f"const {c_scalar.C_TYPE[root.dtype]}* __restrict__ input"
    own = ("Space space", "Plane plane", "Index count", operand)
    element = c_scalar.widened(root.dtype, "input[place]")
    text = emit.kernel(_LOOP, subtask, tensors, own)
    text = text.replace("@START@", "-INFINITY" if root.maximum else "0.0f")
    step = f"pick_max(value, {element})" if root.maximum else f"value + {element}"
    text = text.replace("@STEP@", step).replace("@END@", "" if root.maximum else _MEAN)
    lines = epilogue(subtask, "    ", partial(_element, subtask, tensors), root="value")
    return text.replace("@EPILOGUE@", "\n".join(lines))


_MEAN = """
    value /= float(DIVISOR ? DIVISOR : window_size(plane, d, h, w));"""
_LOOP = """\
template <typename Index>
__global__ void __launch_bounds__(THREADS) @NAME@(
    @PARAMETERS@) {
  const Index depth = Index(plane.out[0]), height = Index(plane.out[1]), width = Index(plane.out[2]);
  const Index steps[3] = {Index(plane.stride[0]), Index(plane.stride[1]), Index(plane.stride[2])};
  for (Index point = (Index)blockIdx.x * THREADS + threadIdx.x; point < count;
       point += (Index)gridDim.x * THREADS) {
    const Index above = quotient(point, width), high = quotient(above, height), outer = quotient(high, depth);
    const Side d = side_at(plane, 0, int(high - outer * depth));
    const Side h = side_at(plane, 1, int(above - high * height));
    const Side w = side_at(plane, 2, int(point - above * width));
    const Index base = outer_place(plane, outer);
    float value = @START@;
    if constexpr (UNROLLED) {
#pragma unroll
      for (int i = 0; i < WINDOW; ++i) {
        const int z = d.start + i / (size_of(2) * size_of(1)) * dilation_of(0);
        const int y = h.start + i / size_of(2) % size_of(1) * dilation_of(1);
        const int x = w.start + i % size_of(2) * dilation_of(2);
        const Index place = base + z * steps[0] + y * steps[1] + x * steps[2];
        if (INSIDE || (d.holds(z) && h.holds(y) && w.holds(x))) value = @STEP@;
      }
    } else {
      for (int z = d.first; z < d.end; z += dilation_of(0)) {
        for (int y = h.first; y < h.end; y += dilation_of(1)) {
#pragma unroll 4
          for (int x = w.first; x < w.end; x += dilation_of(2)) {
            const Index place = base + z * steps[0] + y * steps[1] + x * steps[2];
            value = @STEP@;
          }
        }
      }
    }@END@
    Index at[OPERANDS] = {};
    locate(space, 0, space.rank, point, at);
@EPILOGUE@
  }
}"""


def _element(subtask: Subtask, tensors: emit.Border, number: int) -> str:
    return f"{emit.operand_name(tensors, subtask.accesses[number], number)}[at[{number}]]"


def _run(subtask: Subtask, tensors: emit.Border, root: PoolRoot) -> str:
    accesses = subtask.accesses
    where = tensors.inputs[root.value].where
    pointer = f"(const {c_scalar.C_TYPE[root.dtype]}*){where}.data"
    operands = ", ".join([pointer, *emit.arguments(tensors, accesses)])
    configured, name = "<<<grid, THREADS, 0, stream>>>", emit.kernel_name(subtask)
    launches = [
        f"{name}<{index}>{configured}(space, plane, {index}(count), {operands});"
        for index in ("int", "int64_t")
    ]
    body = [
        "  Space space = empty_space();",
        *emit.widening(tensors, accesses),
        *emit.placing(tensors, accesses),
        "  const int64_t count = points(space, 0, RANK);",
        *emit.covering(tensors, accesses, "count"),
        "  if (count == 0) return STITCH_OK;",
        "  Plane plane;",
        f"  if (!plane_of(plane, space, {where})) return STITCH_UNSUPPORTED_SHAPE;",
        "  coalesce(space, 0, RANK);",
        "  const unsigned grid = grid_for((count + THREADS - 1) / THREADS);",
        f"  if (compact(space, {where}, count)) {{",
        f"    {launches[0]}",
        "  } else {",
        f"    {launches[1]}",
        "  }",
    ]
    return emit.main_function(body)
