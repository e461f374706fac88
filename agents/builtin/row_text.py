"""The parts of kernels over rows that their strategies share: geometry, loads, stores, walks."""

from stitch_tui.agents.builtin import emit
from stitch_tui.agents.builtin.ir import RowsRoot, Subtask, Tune
from stitch_tui.agents.builtin.row_walks import RowProgram, Walk


def opening(
    subtask: Subtask, tensors: emit.Border, tune: Tune, bound: str, root: RowsRoot, *, columns: bool
) -> list[str]:
    """The parts of the file in front of its kernels."""
    rank = max(subtask.rank, 1)
    order = [*(d for d in range(rank) if d not in root.axes), *root.axes]
    named = [
        f"constexpr int KEPT = {rank - len(root.axes)};  // dimensions that number the rows",
        f"constexpr int ORDER[RANK] = {{{', '.join(map(str, order))}}};  // those first, then the reduced",
    ]
    if root.groups:
        named.append(f"constexpr int64_t GROUPS = {root.groups};")
    return [
        emit.opening(subtask, tensors, tune, bound),
        emit.constants(subtask.rank, len(subtask.accesses)) + "\n".join(named),
        emit.template("scalar"),
        emit.template("space"),
        *([emit.template("groups")] if root.groups else []),
        emit.template("rows"),
        emit.template("pack"),
        emit.template("reduce"),
        emit.template("columns" if columns else "lanes"),
    ]


def arranging(subtask: Subtask, tensors: emit.Border, root: RowsRoot) -> str:
    """A host function that finds the rows of a call."""
    accesses = subtask.accesses
    mask = sum(1 << axis for axis in root.axes)
    return "\n".join(
        [
            "static int arranged(const stitch_call* call, Rows& r) {",
            "  Space space = empty_space();",
            *emit.widening(tensors, accesses, mask, groups=root.groups),
            *emit.placing(tensors, accesses, mask, groups=root.groups),
            "  r = rows_of(space);",
            *emit.covering(tensors, accesses, "r.rows * r.length", "r.rows"),
            "  return STITCH_OK;",
            "}",
        ]
    )


def if_packed(subtask: Subtask, tensors: emit.Border, packed: list[str], alone: list[str]) -> list[str]:
    """Host lines that do the first where every operand can be moved in packs, else the second."""
    return [
        f"  if ({packing(subtask, tensors)}) {{",
        *indented(packed, 4),
        "  } else {",
        *indented(alone, 4),
        "  }",
    ]


def packing(subtask: Subtask, tensors: emit.Border) -> str:
    """A C expression: whether every operand can be moved in packs."""
    tests = [
        f"row_packs(r, {i}, {tensors.tensor(a).where}, {a.dtype.size}, {str(a.output).lower()})"
        for i, a in enumerate(subtask.accesses)
        if not a.per_row
    ]
    return " &&\n      ".join(tests) or "false"


def forms(program: RowProgram, root: RowsRoot) -> list[str]:
    """Host lines: which forms of the kernel a call allows."""
    along = [i for i, access in enumerate(program.accesses) if not access.per_row]
    steps = [f"r.space.inner[{i}] == 1" for i in along]
    lines = [
        "  const Planes planes = planes_of(r);",
        f"  const bool flat = {' && '.join(['compact(r) && r.outer <= 1 && r.inner == 1', *steps])};",
    ]
    if len(root.axes) > 1:
        steps = [f"r.space.inner[{i}] == 1" for i in along if i in program.whole]
        lines += [
            f"  const bool in_planes = {' && '.join(['compact(r) && r.outer == 1 && r.inner == 2', *steps])};"
        ]
    return lines


def launches(root: RowsRoot, calls: dict[str, str]) -> list[str]:
    """Host lines that launch the kernel in the first form that a call allows; `calls` has one for each."""
    lines = ["if (flat) {", f"  {calls['FLAT']}"]
    if len(root.axes) > 1:
        lines += ["} else if (in_planes) {", f"  {calls['PLANES']}"]
    return [*lines, "} else {", f"  {calls['SCATTERED']}", "}"]


def offsets(program: RowProgram, walk: Walk, root: RowsRoot, last: bool) -> tuple[list[str], list[str]]:
    """Lines that find where element `d` of a row is, and for each access the term to add.

    ``Index`` is the type of places inside a row, ``FORM`` how rows lie in memory.
    """
    if len(root.axes) == 1:
        return [], [f"(FORM == FLAT ? d : d * Index(space.inner[{i}]))" for i in range(len(program.accesses))]
    needed = bool(program.loads(walk)) or (last and bool(program.element_stores))
    find = "place_in_row<FORM>(space, outer, inner, planes, d, here);"
    lines = ["Index here[OPERANDS] = {};", find] if needed else []
    return lines, [f"here[{i}]" for i in range(len(program.accesses))]


def stores(program: RowProgram, terms: list[str]) -> list[str]:
    """Lines that move the packs of the results."""
    return [
        f"store_pack<VEC>({program.operand(s.access)} + at[{s.access}] + {terms[s.access]}, "
        f"{program.step(s.access)}, VEC, out{s.access});"
        for s in program.element_stores
    ]


def packs_of_results(program: RowProgram) -> list[str]:
    return [f"Pack<{program.c_type(s.access)}, VEC> out{s.access};" for s in program.element_stores]


def load(program: RowProgram, index: int, terms: list[str]) -> str:
    """An expression that reads the pack of a load."""
    number = int(program.instrs[index].literal)
    place = f"{program.operand(number)} + at[{number}] + {terms[number]}"
    return f"load_pack<VEC>({place}, {program.step(number)}, VEC)"


def start_of_row(program: RowProgram, needed: set[int]) -> list[str]:
    return [
        "  const int lane = lane_of_thread();",
        "  for (int64_t tile = blockIdx.x; tile * ROWS < rows; tile += gridDim.x) {",
        "    const int64_t mine = tile * ROWS + row_of_thread();",
        "    const bool live = mine < rows;  // a thread without a row works on the last, and stores nothing",
        "    int64_t at[OPERANDS] = {};",
        "    row_starts<FORM>(space, outer, live ? mine : rows - 1, at);",
        *indented(program.row_values(0, needed), 4),
    ]


def indented(lines: list[str], by: int) -> list[str]:
    return [line if line.startswith("#") else " " * by + line for line in lines]


def signature(subtask: Subtask, program: RowProgram, template: str, suffix: str, length: str) -> list[str]:
    common = ["Space space", "int outer", "int inner", "Planes planes", "int64_t rows", f"{length} length"]
    parameters = ",\n    ".join([*common, *emit.parameters(program.tensors, program.accesses)])
    name = emit.kernel_name(subtask) + suffix
    return [template, f"__global__ void __launch_bounds__(LANES * ROWS) {name}(\n    {parameters}) {{"]


def row_stores(program: RowProgram, condition: str) -> list[str]:
    if not program.row_stores:
        return []
    return [f"    if ({condition}) {{", *indented(program.row_store_lines(), 6), "    }"]


def long_walk(program: RowProgram, walk: Walk, root: RowsRoot, begin: str, end: str) -> list[str]:
    """A loop over the elements of a row from `begin` to `end`, all read from memory."""
    last = not walk.reductions
    if last and not program.element_stores:
        return []
    finding, terms = offsets(program, walk, root, last)
    lines = [
        "#pragma unroll 4",
        f"for (Index d = {begin}; d < {end}; d += LANES * VEC) {{",
        *indented(finding, 2),
    ]
    for index in program.loads(walk):
        c_type = program.c_type(int(program.instrs[index].literal))
        lines.append(f"  const Pack<{c_type}, VEC> raw{index} = {load(program, index, terms)};")
    lines += indented(packs_of_results(program) if last else [], 2)
    lines += ["#pragma unroll", "  for (int e = 0; e < VEC; ++e) {"]
    lines += ["    " + program.element(index, f"raw{index}.at[e]") for index in walk.elements]
    lines += [f"    {program.take(r, 'd + e')}" for r in walk.reductions]
    if last:
        lines += [f"    out{s.access}.at[e] = {program.stored(s)};" for s in program.element_stores]
        lines += ["  }", "  if (live) {", *indented(stores(program, terms), 4)]
    return [*lines, "  }", "}"]
