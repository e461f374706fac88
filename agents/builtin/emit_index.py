"""Kernels that move elements: each thread finds its point's coordinates, and from them where to read."""

from stitch_tui.agents.builtin import c_scalar, emit
from stitch_tui.agents.builtin.ir import MAX_RANK, Instr, Subtask, Tune
from stitch_tui.tools.graph import Graph

SENTENCE = "Each thread writes {0} and reads where the index map says; neighbours write neighbours."


def strategies(subtask: Subtask) -> list[Tune]:
    """Four results a thread keep more reads in flight; one wastes less on small tensors."""
    four = Tune(
        "four-results", SENTENCE.format("four results, a block apart,"), {"THREADS": 256, "RESULTS": 4}
    )
    one = Tune("one-result", SENTENCE.format("one result"), {"THREADS": 256, "RESULTS": 1})
    return [four, one] if subtask.points >= 1 << 20 else [one, four]


def source(graph: Graph, subtask: Subtask, tune: Tune, bound: str) -> str:
    """The `.cu` text."""
    tensors = emit.border(graph, subtask)
    most = max(1, *(a.rank for a in subtask.accesses))
    parts = [
        emit.opening(subtask, tensors, tune, bound),
        f"constexpr int OPERANDS = {len(subtask.accesses)}, MOST_DIMENSIONS = {most};",
        emit.template("scalar"),
        emit.template("index"),
        _kernel(subtask, tensors),
        emit.call_check(tensors),
        _run(subtask, tensors),
    ]
    return "\n\n".join(parts)


def _kernel(subtask: Subtask, tensors: emit.Border) -> str:
    accesses = subtask.accesses
    parameters = ",\n    ".join(["Layouts layouts", "int64_t count", *emit.parameters(tensors, accesses)])
    lines = [
        f"__global__ void __launch_bounds__(THREADS) {emit.kernel_name(subtask)}(\n    {parameters}) {{",
        "  const int64_t step = (int64_t)gridDim.x * THREADS * RESULTS;",
        "  for (int64_t first = (int64_t)blockIdx.x * THREADS * RESULTS; first < count; first += step) {",
        "#pragma unroll",
        "    for (int r = 0; r < RESULTS; ++r) {",
        "      const int64_t point = first + r * THREADS + threadIdx.x;",
        "      if (point >= count) break;",
        *_coordinates(subtask),
        *(line for i, instr in enumerate(subtask.dag.instrs) for line in _value(subtask, tensors, i, instr)),
        *_stores(subtask, tensors),
        "    }",
        "  }",
        "}",
    ]
    return "\n".join(lines)


def _coordinates(subtask: Subtask) -> list[str]:
    """The point's coordinates, the last dimension first."""
    out = _first_output(subtask)
    lines, rest = [], "point"
    for d in range(subtask.rank - 1, 0, -1):
        lines.append(f"      const int64_t over{d} = divided({rest}, layouts.of[{out}].extent[{d}]);")
        lines.append(f"      const int64_t at{d} = {rest} - over{d} * layouts.of[{out}].extent[{d}];")
        rest = f"over{d}"
    return [*lines, f"      const int64_t at0 = {rest};"] if subtask.rank else []


def _first_output(subtask: Subtask) -> int:
    return next(i for i, a in enumerate(subtask.accesses) if a.output)


def _value(subtask: Subtask, tensors: emit.Border, index: int, instr: Instr) -> list[str]:
    instrs, register = subtask.dag.instrs, instr.register.value
    if instr.op == "coord":
        return [f"      const {register} v{index} = at{instr.literal};"]
    if instr.op == "size":
        number, dim = divmod(int(instr.literal), MAX_RANK)
        return [f"      const {register} v{index} = layouts.of[{number}].extent[{dim}];"]
    if instr.op in ("load_at", "load_if"):
        number, guarded = int(instr.literal), instr.op == "load_if"
        places = instr.args[1:] if guarded else instr.args
        terms = [f"v{a} * layouts.of[{number}].stride[{d}]" for d, a in enumerate(places)]
        access = subtask.accesses[number]
        name = emit.operand_name(tensors, access, number)
        value = c_scalar.widened(access.dtype, f"{name}[{' + '.join(terms) or '0'}]")
        if guarded:
            value = f"v{instr.args[0]} ? {value} : ({register})0"
        return [f"      const {register} v{index} = {value};"]
    return emit.assignments(instrs, [index], "      ")


def _stores(subtask: Subtask, tensors: emit.Border) -> list[str]:
    lines = []
    for store in subtask.dag.stores:
        access = subtask.accesses[store.access]
        terms = [f"at{d} * layouts.of[{store.access}].stride[{d}]" for d in range(subtask.rank)]
        name = emit.operand_name(tensors, access, store.access)
        value = c_scalar.narrowed(access.dtype, f"v{store.instr}")
        lines.append(f"      {name}[{' + '.join(terms) or '0'}] = {value};")
    return lines


def _run(subtask: Subtask, tensors: emit.Border) -> str:
    name, accesses = emit.kernel_name(subtask), subtask.accesses
    first = tensors.tensor(accesses[_first_output(subtask)]).where
    arguments = ", ".join(["layouts", "count", *emit.arguments(tensors, accesses)])
    body = [
        f"  const int64_t count = {first}.numel;",
        *(
            f"  if (!same_shape({first}, {tensors.tensor(a).where})) return STITCH_UNSUPPORTED_SHAPE;"
            for a in accesses
            if a.output and tensors.tensor(a).where != first
        ),
        "  if (count == 0) return STITCH_OK;",
        "  Layouts layouts;",
        *(f"  layouts.of[{i}] = layout({tensors.tensor(a).where});" for i, a in enumerate(accesses)),
        "  const int64_t blocks = (count + THREADS * RESULTS - 1) / (THREADS * RESULTS);",
        f"  {name}<<<grid_for(blocks), THREADS, 0, stream>>>({arguments});",
    ]
    return emit.main_function(body)
