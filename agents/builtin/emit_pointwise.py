"""Pointwise kernels: one grid-stride loop over packs of neighbouring elements, any broadcast."""

from stitch_tui.agents.builtin import c_scalar, emit
from stitch_tui.agents.builtin.epilogue import epilogue
from stitch_tui.agents.builtin.ir import Subtask, Tune
from stitch_tui.tools.graph import Graph

PACK_BYTES = 16


def strategies(subtask: Subtask) -> list[Tune]:
    """Packs of 128 bits first; then smaller blocks; then one element at a time."""
    widest = max(a.dtype.size for a in subtask.accesses)
    pack = max(PACK_BYTES // widest, 2)
    many = f"Each thread moves packs of {pack} elements, of 128 bits for the widest; else one at a time."
    return [
        Tune("vector", many, {"THREADS": 256, "PACK": pack}),
        Tune("vector-small-blocks", many, {"THREADS": 128, "PACK": pack}),
        Tune("scalar", "Each thread computes one element at a time.", {"THREADS": 256}),
    ]


def source(graph: Graph, subtask: Subtask, tune: Tune, bound: str) -> str:
    """The `.cu` text."""
    tensors = emit.border(graph, subtask)
    parts = [
        emit.opening(subtask, tensors, tune, bound),
        emit.constants(subtask.rank, len(subtask.accesses)),
        emit.template("scalar"),
        emit.template("space"),
        emit.template("pack"),
        kernel(subtask, tensors),
        emit.call_check(tensors),
        emit.main_function(launch(subtask, tensors, tune)),
    ]
    return "\n\n".join(parts)


def kernel(subtask: Subtask, tensors: emit.Border) -> str:
    """The device function."""
    name, accesses = emit.kernel_name(subtask), subtask.accesses
    parameters = ",\n    ".join(["Space space", "int64_t count", *emit.parameters(tensors, accesses)])
    lines = [
        "template <int VEC>",
        f"__global__ void __launch_bounds__(THREADS) {name}(\n    {parameters}) {{",
        "  const int64_t step = (int64_t)gridDim.x * THREADS * VEC;",
        "  int64_t first = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * VEC;",
        "  for (; first < count; first += step) {",
        "    int64_t at[OPERANDS] = {};",
        "    locate(space, 0, space.rank, first, at);",
        "    const int live = count - first < VEC ? int(count - first) : VEC;",
    ]
    for i, access in enumerate(accesses):
        c_type, operand = c_scalar.C_TYPE[access.dtype], emit.operand_name(tensors, access, i)
        value = "" if access.output else f" = load_pack<VEC>({operand} + at[{i}], space.inner[{i}], live)"
        lines.append(f"    Pack<{c_type}, VEC> pack{i}{value};")
    body = epilogue(subtask, "      ", lambda number: f"pack{number}.at[e]")
    lines += ["#pragma unroll", "    for (int e = 0; e < VEC; ++e) {", *body, "    }"]
    for i, access in enumerate(accesses):
        if access.output:
            operand = emit.operand_name(tensors, access, i)
            lines.append(f"    store_pack<VEC>({operand} + at[{i}], space.inner[{i}], live, pack{i});")
    return "\n".join([*lines, "  }", "}"])


def launch(subtask: Subtask, tensors: emit.Border, tune: Tune) -> list[str]:
    """Host lines that find the space and launch the kernel."""
    name, accesses = emit.kernel_name(subtask), subtask.accesses
    arguments = ", ".join(["space", "count", *emit.arguments(tensors, accesses)])
    packs = " &&\n      ".join(
        f"packs(space, {i}, {tensors.tensor(a).where}, {a.dtype.size}, PACK, {str(a.output).lower()})"
        for i, a in enumerate(accesses)
    )
    launch = "<<<grid_for((count + THREADS * {0} - 1) / (THREADS * {0})), THREADS, 0, stream>>>"
    body = [
        "  Space space = empty_space();",
        *emit.widening(tensors, accesses),
        *emit.placing(tensors, accesses),
        "  const int64_t count = points(space, 0, RANK);",
        *emit.covering(tensors, accesses, "count"),
        "  if (count == 0) return STITCH_OK;",
        "  coalesce(space, 0, RANK);",
        "  const int last = space.rank - 1;",
        "  for (int o = 0; o < OPERANDS; ++o) space.inner[o] = last < 0 ? 0 : space.stride[o][last];",
    ]
    scalar = f"{name}<1>{launch.format(1)}({arguments});"
    if "PACK" not in tune.constants:
        body.append(f"  {scalar}")
    else:
        body += [
            f"  const bool packed = {packs};",
            "  if (packed) {",
            f"    {name}<PACK>{launch.format('PACK')}({arguments});",
            "  } else {",
            f"    {scalar}",
            "  }",
        ]
    return body
