"""Kernels that move elements: each thread finds its point's coordinates, and from them where to read."""

from dataclasses import dataclass

from stitch_tui.agents.builtin import c_scalar, emit
from stitch_tui.agents.builtin.ir import MAX_RANK, Register, Store, Subtask, Tune
from stitch_tui.tools.graph import Graph

SENTENCE = "Each thread writes {0} and reads where the index map says; neighbours write neighbours."
PACK_BYTES = 16


def strategies(subtask: Subtask) -> list[Tune]:
    """Four results a thread keep more reads in flight; one wastes less on small tensors."""
    pack = max(PACK_BYTES // max(a.dtype.size for a in subtask.accesses), 2)
    sizes = {"THREADS": 256, "PACK": pack}
    four = Tune("four-results", SENTENCE.format("four results, a block apart,"), {**sizes, "RESULTS": 4})
    one = Tune("one-result", SENTENCE.format("one result"), {**sizes, "RESULTS": 1})
    return [four, one] if subtask.points >= 1 << 20 else [one, four]


def source(graph: Graph, subtask: Subtask, tune: Tune, bound: str) -> str:
    """The `.cu` text."""
    tensors = emit.border(graph, subtask)
    most = max(1, *(a.rank for a in subtask.accesses))
    moves = Moves.of(subtask)
    parts = [
        emit.opening(subtask, tensors, tune, bound),
        f"constexpr int OPERANDS = {len(subtask.accesses)}, MOST_DIMENSIONS = {most};",
        emit.template("scalar"),
        emit.template("index"),
        _PACK,
        _kernel(subtask, tensors, moves),
        emit.call_check(tensors),
        _run(subtask, tensors, moves),
    ]
    return "\n\n".join(parts)


_PACK = """\
// VEC neighbouring elements, moved by one instruction.
template <typename T, int VEC>
struct alignas(sizeof(T) * VEC) Pack {
  T at[VEC];
};"""
_PLACES = frozenset({"plus", "minus", "times", "quotient", "remainder", "max", "min", "select"})


@dataclass(frozen=True)
class Moves:
    """What a scalar program's values are, for a thread that computes neighbours along the last dimension."""

    places: frozenset[int]
    """Integers that only say where something lies, in as many bits as the largest tensor needs."""
    packed: frozenset[int]
    """Loads of neighbours; empty when neighbours of the result are not neighbours where they are read."""
    varying: frozenset[int]
    """What follows from those loads: another value for each neighbour."""
    together: bool
    """Whether neighbours can be computed together at all."""

    @staticmethod
    def of(subtask: Subtask) -> "Moves":
        instrs = subtask.dag.instrs
        places: set[int] = set()
        for i, instr in enumerate(instrs):
            known = instr.op in ("coord", "size") or (instr.op == "const" and 0 <= instr.literal < 1 << 15)
            integers = [a for a in instr.args if instrs[a].register is Register.I64]
            derived = instr.op in _PLACES and all(a in places for a in integers)
            if instr.register is Register.I64 and (known or derived):
                places.add(i)
        last = {i for i, x in enumerate(instrs) if x.op == "coord" and x.literal == subtask.rank - 1}
        loads = [i for i, x in enumerate(instrs) if x.op in ("load_at", "load_if")]
        packed = {i for i in loads if instrs[i].args and instrs[i].args[-1] in last}
        stored = {store.instr for store in subtask.dag.stores}
        others = [a for i, x in enumerate(instrs) for a in (x.args[:-1] if i in packed else x.args)]
        together = bool(packed) and last.isdisjoint(others) and last.isdisjoint(stored)
        if not together:
            packed = set()
        varying: set[int] = set()
        for i, instr in enumerate(instrs):
            if i in packed or not varying.isdisjoint(instr.args):
                varying.add(i)
        gathered = any(a in varying for i in loads for a in instrs[i].args)
        if gathered:  # places that were read themselves
            return Moves(frozenset(places), frozenset(), frozenset(), together=False)
        return Moves(frozenset(places), frozenset(packed), frozenset(varying), together)


def _kernel(subtask: Subtask, tensors: emit.Border, moves: Moves) -> str:
    accesses, instrs = subtask.accesses, subtask.dag.instrs
    parameters = ",\n    ".join(
        ["Layouts<Index> layouts", "Index count", *emit.parameters(tensors, accesses)]
    )
    fixed = [i for i in range(len(instrs)) if i not in moves.varying]
    varying = [i for i in sorted(moves.varying) if i not in moves.packed]
    lines = [
        "// A thread computes VEC neighbours along the last dimension; `count` is of such packs.",
        "template <typename Index, int VEC>",
        f"__global__ void __launch_bounds__(THREADS) {emit.kernel_name(subtask)}(\n    {parameters}) {{",
        "  const Index step = (Index)gridDim.x * THREADS * RESULTS;",
        "  for (Index first = (Index)blockIdx.x * THREADS * RESULTS; first < count; first += step) {",
        "#pragma unroll",
        "    for (int r = 0; r < RESULTS; ++r) {",
        "      const Index point = first + r * THREADS + threadIdx.x;",
        "      if (point >= count) break;",
        *_coordinates(subtask),
        *(line for i in fixed for line in _value(subtask, tensors, moves, i, "      ")),
        *(line for i in sorted(moves.packed) for line in _packed_load(subtask, tensors, moves, i)),
        *(f"      Pack<{_c_type(subtask, s)}, VEC> out{s.access};" for s in subtask.dag.stores),
        "#pragma unroll",
        "      for (int e = 0; e < VEC; ++e) {",
        *(_element(subtask, i) for i in sorted(moves.packed)),
        *(line for i in varying for line in _value(subtask, tensors, moves, i, "        ")),
        *(f"        out{s.access}.at[e] = {_narrowed(subtask, s)};" for s in subtask.dag.stores),
        "      }",
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
        extent = f"layouts.of[{out}].extent[{d}]"
        extent, times = (f"({extent} / VEC)", " * VEC") if d == subtask.rank - 1 else (extent, "")
        lines.append(f"      const Index over{d} = divided({rest}, {extent});")
        lines.append(f"      const Index at{d} = ({rest} - over{d} * {extent}){times};")
        rest = f"over{d}"
    times = " * VEC" if subtask.rank == 1 else ""
    return [*lines, f"      const Index at0 = {rest}{times};"] if subtask.rank else []


def _first_output(subtask: Subtask) -> int:
    return next(i for i, a in enumerate(subtask.accesses) if a.output)


def _value(subtask: Subtask, tensors: emit.Border, moves: Moves, index: int, indent: str) -> list[str]:
    """The statement of a value that is no load of neighbours."""
    instr = subtask.dag.instrs[index]
    register = "Index" if index in moves.places else instr.register.value
    if instr.op == "coord":
        value = f"at{instr.literal}"
    elif instr.op == "size":
        number, dim = divmod(int(instr.literal), MAX_RANK)
        value = f"layouts.of[{number}].extent[{dim}]"
    elif instr.op in ("load_at", "load_if"):
        access = subtask.accesses[int(instr.literal)]
        value = c_scalar.widened(access.dtype, _place(subtask, tensors, moves, index))
        if instr.op == "load_if":
            value = f"v{instr.args[0]} ? {value} : ({register})0"
    else:
        wide = instr.register is Register.I64 and index not in moves.places
        cast = "(long long)" if wide else ""
        value = c_scalar.expression(instr, [f"{cast if a in moves.places else ''}v{a}" for a in instr.args])
    return [f"{indent}const {register} v{index} = {value};"]


def _place(subtask: Subtask, tensors: emit.Border, moves: Moves, index: int) -> str:
    """The element that a load reads, or the first of its neighbours."""
    instr = subtask.dag.instrs[index]
    number, args = int(instr.literal), instr.args[1:] if instr.op == "load_if" else instr.args
    places = [f"v{a}" if a in moves.places else f"Index(v{a})" for a in args]
    terms = [f"{place} * layouts.of[{number}].stride[{d}]" for d, place in enumerate(places)]
    return f"{emit.operand_name(tensors, subtask.accesses[number], number)}[{' + '.join(terms) or '0'}]"


def _packed_load(subtask: Subtask, tensors: emit.Border, moves: Moves, index: int) -> list[str]:
    instr = subtask.dag.instrs[index]
    pack = f"Pack<{c_scalar.C_TYPE[subtask.accesses[int(instr.literal)].dtype]}, VEC>"
    guard = f"if (v{instr.args[0]}) " if instr.op == "load_if" else ""
    read = f"*reinterpret_cast<const {pack}*>(&{_place(subtask, tensors, moves, index)})"
    return [f"      {pack} pack{index} = {{}};", f"      {guard}pack{index} = {read};"]


def _element(subtask: Subtask, index: int) -> str:
    instr = subtask.dag.instrs[index]
    value = c_scalar.widened(subtask.accesses[int(instr.literal)].dtype, f"pack{index}.at[e]")
    return f"        const {instr.register.value} v{index} = {value};"


def _c_type(subtask: Subtask, store: Store) -> str:
    return c_scalar.C_TYPE[subtask.accesses[store.access].dtype]


def _narrowed(subtask: Subtask, store: Store) -> str:
    return c_scalar.narrowed(subtask.accesses[store.access].dtype, f"v{store.instr}")


def _stores(subtask: Subtask, tensors: emit.Border) -> list[str]:
    lines = []
    for store in subtask.dag.stores:
        terms = [f"at{d} * layouts.of[{store.access}].stride[{d}]" for d in range(subtask.rank)]
        name = emit.operand_name(tensors, subtask.accesses[store.access], store.access)
        pack = f"Pack<{_c_type(subtask, store)}, VEC>"
        place = f"{name}[{' + '.join(terms) or '0'}]"
        lines.append(f"      *reinterpret_cast<{pack}*>(&{place}) = out{store.access};")
    return lines


def _run(subtask: Subtask, tensors: emit.Border, moves: Moves) -> str:
    name, accesses = emit.kernel_name(subtask), subtask.accesses
    first = tensors.tensor(accesses[_first_output(subtask)]).where
    wheres = [tensors.tensor(a).where for a in accesses]
    arguments = ", ".join(["layouts", "packs", *emit.arguments(tensors, accesses)])

    def launch(index: str, width: str) -> list[str]:
        return [
            f"Layouts<{index}> layouts;",
            *(f"layouts.of[{i}] = layout<{index}>({where});" for i, where in enumerate(wheres)),
            f"const {index} packs = {index}(count{' / PACK' if width == 'PACK' else ''});",
            "const unsigned grid = grid_for((packs + GROUP - 1) / GROUP);",
            f"{name}<{index}, {width}><<<grid, THREADS, 0, stream>>>({arguments});",
        ]

    body = [
        f"  const int64_t count = {first}.numel;",
        *(
            f"  if (!same_shape({first}, {where})) return STITCH_UNSUPPORTED_SHAPE;"
            for a, where in zip(accesses, wheres, strict=True)
            if a.output and where != first
        ),
        "  if (count == 0) return STITCH_OK;",
        "  constexpr int64_t GROUP = THREADS * RESULTS;",
        f"  const bool small = {' && '.join(f'compact({where})' for where in dict.fromkeys(wheres))};",
    ]
    choices = [("small", "int", "1"), ("", "int64_t", "1")]
    if moves.together:
        moved = {int(subtask.dag.instrs[i].literal) for i in moves.packed}
        moved |= {i for i, a in enumerate(accesses) if a.output}
        tests = (f"moves_in_packs({wheres[i]}, {accesses[i].dtype.size})" for i in sorted(moved))
        body.append(f"  const bool packed = small && {' && '.join(tests)};")
        choices.insert(0, ("packed", "int", "PACK"))
    for number, (test, index, width) in enumerate(choices):
        opening = f"if ({test}) {{" if test else "{"
        body.append(f"  {'} else ' if number else ''}{opening}")
        body += [f"    {line}" for line in launch(index, width)]
    return emit.main_function([*body, "  }"])
