"""Kernels that reduce along rows: softmax, norms, sums, with pointwise work before and after.

The scalar program is cut at its reductions into walks over the row.  Values that a later walk needs
stay in registers while a row fits there; longer rows are read again in each walk, and few long rows
are cut into parts for a kernel each walk (`emit_split`).
"""

import math

from stitch_tui.agents.builtin import emit, emit_split, row_text
from stitch_tui.agents.builtin.ir import RowsRoot, Subtask, Tune
from stitch_tui.agents.builtin.row_walks import RowProgram, Walk
from stitch_tui.tools.graph import Graph

WARP = 32
WANTED = 16
"""Elements for each thread that the likeliest strategy has; see `_lane_tunes`."""
MOST_ELEMENTS = 32768
"""Elements that a block holds in registers, of which a thread has 64 at most."""
MOST_TOGETHER = 4
"""Packs of later walks that a thread reads ahead; more would cost too many registers."""
FEW_ROWS, LONG_ROW = 128, 8192
"""Fewer rows than one for each multiprocessor of an H200, each longer than this, are cut first."""
PACK_BYTES = 16


def strategies(subtask: Subtask) -> list[Tune]:
    """A warp, a block or a column of threads for each row, or parts of it; the likeliest first."""
    root = subtask.root
    assert isinstance(root, RowsRoot)
    rows, length = root.extents
    whole = _lane_tunes(subtask, length) if root.along else _column_tunes(length)
    cut = emit_split.tunes(root, pack_of(subtask)) if max(subtask.dag.levels(), default=0) else []
    return [*cut, *whole] if rows < FEW_ROWS and length > LONG_ROW else [*whole, *cut]


def _lane_tunes(subtask: Subtask, length: int) -> list[Tune]:
    """First those in which a thread holds about `WANTED` elements: more cost occupancy, fewer idle."""
    pack = pack_of(subtask)
    tunes = [
        tune("warp-per-row", "One warp for each row, four rows in a block", WARP, 4, pack, length),
        *(
            tune(f"{name}block-per-row", f"One block of {lanes} threads for each row", lanes, 1, pack, length)
            for name, lanes in (("small-", 128), ("", 256), ("wide-", 512), ("large-", 1024))
        ),
    ]
    return sorted(tunes, key=lambda t: abs(math.log2(max(length, 1) / t.constants["LANES"] / WANTED)))


def _column_tunes(length: int) -> list[Tune]:
    flat = tune("columns", "32 neighbouring rows in a block, 8 threads for each", 8, 32, 1, length)
    tall = tune("tall-columns", "32 neighbouring rows in a block, 32 threads for each", 32, 32, 1, length)
    alone = tune(
        "column-per-thread", "128 neighbouring rows in a block, a thread for each", 1, 128, 1, length
    )
    if length <= 16:
        return [alone, flat, tall]
    return [flat, tall, alone] if length <= 256 else [tall, flat, alone]


def tune(name: str, sentence: str, lanes: int, rows: int, pack: int, length: int) -> Tune:
    """A strategy with `lanes` threads for each of a block's `rows`, whose `length` says what they hold."""
    packs = -(-max(length, 1) // (lanes * pack))
    most = max(min(MOST_ELEMENTS // lanes, 64) // pack, 1)
    items = min(packs, most)
    constants = {"LANES": lanes, "ROWS": rows, "PACK": pack, "ITEMS": items}
    return Tune(name, f"{sentence}; a row stays in registers if it fits there.", constants)


def pack_of(subtask: Subtask) -> int:
    """Elements in 128 bits of the widest tensor along the rows; 1 where rows are no multiple of that."""
    root = subtask.root
    assert isinstance(root, RowsRoot)
    along = [a.dtype.size for a in subtask.accesses if not a.per_row]
    pack = max(PACK_BYTES // max(along, default=4), 2)
    return pack if root.run % pack == 0 else 1


def source(graph: Graph, subtask: Subtask, tune: Tune, bound: str) -> str:
    """The `.cu` text."""
    root = subtask.root
    assert isinstance(root, RowsRoot)
    if tune.name.startswith(emit_split.PREFIX):
        return emit_split.source(graph, subtask, tune, bound)
    tensors = emit.border(graph, subtask)
    held = RowProgram(graph, subtask, tensors, keep=True)
    read = RowProgram(graph, subtask, tensors, keep=False)
    parts = [
        *row_text.opening(subtask, tensors, tune, bound, root, columns=not root.along),
        _held_kernel(subtask, held, root, tune.constants["ITEMS"]),
        _long_kernel(subtask, read, root),
        emit.call_check(tensors),
        row_text.arranging(subtask, tensors, root),
        _run(subtask, held, tune),
    ]
    return "\n\n".join(parts)


def _held_kernel(subtask: Subtask, program: RowProgram, root: RowsRoot, items: int) -> str:
    needed = program.needed_for(program.walks, row_stores=True)
    template = "template <int COUNT, int VEC, Form FORM, bool FULL>"
    lines = row_text.signature(subtask, program, template, "", "int")
    lines += ["  using Index = int;", *row_text.start_of_row(program, needed)]
    for k in program.later:
        lines.append(f"    {program.instrs[k].register.value} keep{k}[COUNT][VEC];")
    for number, walk in enumerate(program.walks):
        lines += row_text.indented([program.start(r) for r in walk.reductions], 4)
        together = number == 0 or len(program.loads(walk)) * items <= MOST_TOGETHER
        lines += row_text.indented(_held_walk(program, walk, root, together=together), 4)
        lines += row_text.indented([line for r in walk.reductions for line in program.finish(r)], 4)
        if walk.reductions:
            lines += row_text.indented(program.row_values(number + 1, needed), 4)
    lines += row_text.row_stores(program, "live && lane == 0")
    return "\n".join([*lines, "  }", "}"])


def _held_walk(program: RowProgram, walk: Walk, root: RowsRoot, *, together: bool) -> list[str]:
    """One walk over registers; `together`: all reads first, so that they are in flight at once."""
    last = not walk.reductions
    if last and not program.element_stores:
        return []
    finding, terms = row_text.offsets(program, walk, root, last)
    loads = program.loads(walk)
    lines: list[str] = []
    reads: list[str] = []
    for index in loads:
        c_type = program.c_type(int(program.instrs[index].literal))
        if together:
            lines.append(f"Pack<{c_type}, VEC> raw{index}[COUNT] = {{}};")
        else:
            reads.append(f"const Pack<{c_type}, VEC> raw{index} = {row_text.load(program, index, terms)};")
    place = "  const int d = (lane + i * LANES) * VEC;"
    loop = ["#pragma unroll", "for (int i = 0; i < COUNT; ++i) {", place]
    if loads and together:
        lines += [*loop, "  if (!FULL && d >= length) continue;", *row_text.indented(finding, 2)]
        lines += [f"  raw{index}[i] = {row_text.load(program, index, terms)};" for index in loads] + ["}"]
    stored = program.element_stores if last else []
    lines += [*loop, "  if (!FULL && d >= length) continue;", *row_text.indented([*finding, *reads], 2)]
    lines += row_text.indented(row_text.packs_of_results(program) if last else [], 2)
    lines += ["#pragma unroll", "  for (int e = 0; e < VEC; ++e) {"]
    lines += [f"    const {program.instrs[k].register.value} v{k} = keep{k}[i][e];" for k in walk.kept]
    for index in walk.elements:
        pack = f"raw{index}[i].at[e]" if together else f"raw{index}.at[e]"
        lines.append("    " + program.element(index, pack))
        if index in program.later:
            lines.append(f"    keep{index}[i][e] = v{index};")
    lines += [f"    {program.take(r, 'd + e')}" for r in walk.reductions]
    lines += [f"    out{s.access}.at[e] = {program.stored(s)};" for s in stored] + ["  }"]
    if stored:
        lines += ["  if (live) {", *row_text.indented(row_text.stores(program, terms), 4), "  }"]
    return [*lines, "}"]


def _long_kernel(subtask: Subtask, program: RowProgram, root: RowsRoot) -> str:
    needed = program.needed_for(program.walks, row_stores=True)
    template = "template <typename Index, int VEC, Form FORM>"
    lines = row_text.signature(subtask, program, template, "_long", "Index")
    lines += row_text.start_of_row(program, needed)
    for number, walk in enumerate(program.walks):
        lines += row_text.indented([program.start(r) for r in walk.reductions], 4)
        lines += row_text.indented(row_text.long_walk(program, walk, root, "lane * VEC", "length"), 4)
        lines += row_text.indented([line for r in walk.reductions for line in program.finish(r)], 4)
        if walk.reductions:
            lines += row_text.indented(program.row_values(number + 1, needed), 4)
    lines += row_text.row_stores(program, "live && lane == 0")
    return "\n".join([*lines, "  }", "}"])


def _run(subtask: Subtask, program: RowProgram, tune: Tune) -> str:
    name, tensors, root = emit.kernel_name(subtask), program.tensors, subtask.root
    assert isinstance(root, RowsRoot)
    common = ["r.space", "r.outer", "r.inner", "planes", "r.rows"]
    operands = emit.arguments(tensors, subtask.accesses)

    def call(template: str, index: str) -> str:
        arguments = ", ".join([*common, f"{index}(r.length)", *operands])
        return f"{name}{template}<<<grid, block_shape(), 0, stream>>>({arguments});"

    body = [
        "  Rows r;",
        "  if (const int rc = arranged(call, r)) return rc;",
        "  if (r.rows == 0) return STITCH_OK;",
        "  const unsigned grid = grid_for((r.rows + ROWS - 1) / ROWS);",
        *row_text.forms(program, root),
    ]
    width = "PACK" if tune.constants["PACK"] > 1 else "1"
    held = {form: call(f"<ITEMS, {width}, {form}, false>", "int") for form in ("FLAT", "PLANES", "SCATTERED")}
    long = {form: call(f"_long<int, {width}, {form}>", "int") for form in ("FLAT", "PLANES")}
    long["SCATTERED"] = call(f"_long<int64_t, {width}, SCATTERED>", "int64_t")
    choices = [
        f"const int64_t most = LANES * {width} * ITEMS;",
        "if (flat && r.length == most) {",
        f"  {call(f'<ITEMS, {width}, FLAT, true>', 'int')}",
        "} else if (compact(r) && r.length <= most) {",
        *row_text.indented(row_text.launches(root, held), 2),
        "} else {",
        *row_text.indented(row_text.launches(root, long), 2),
        "}",
    ]
    if width == "1":
        return emit.main_function([*body, *row_text.indented(choices, 2)])
    alone = [  # other extents than this graph's
        "if (compact(r) && r.length <= LANES * ITEMS) {",
        f"  {call('<ITEMS, 1, SCATTERED, false>', 'int')}",
        "} else {",
        f"  {call('_long<int64_t, 1, SCATTERED>', 'int64_t')}",
        "}",
    ]
    return emit.main_function([*body, *row_text.if_packed(subtask, tensors, choices, alone)])
