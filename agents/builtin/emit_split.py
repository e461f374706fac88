"""Few long rows, cut into parts so that every multiprocessor has work: one kernel for each walk.

Each block reduces one part of a row into the workspace.  The next walk's blocks each merge the parts
of their row in the same order, so that results do not depend on timing.
"""

from stitch_tui.agents.builtin import emit, row_text
from stitch_tui.agents.builtin.ir import RowsRoot, Subtask, Tune
from stitch_tui.agents.builtin.row_walks import RowProgram
from stitch_tui.tools.graph import Graph

PREFIX = "split"
MULTIPROCESSORS = 132  # of an H200


def tunes(root: RowsRoot, pack: int) -> list[Tune]:
    """One strategy, for rows that lie along memory or across it."""
    sizes = {"PARTS": 512, "BLOCKS": 16 * MULTIPROCESSORS}
    if root.along:
        sentence = "Rows are cut into parts, a block of 256 threads for each; one kernel for each walk."
        return [Tune("split-rows", sentence, {"LANES": 256, "ROWS": 1, "PACK": pack, **sizes})]
    sentence = "32 neighbouring rows are cut into parts, 16 threads for each row; one kernel for each walk."
    return [Tune("split-columns", sentence, {"LANES": 16, "ROWS": 32, "PACK": 1, **sizes})]


def source(graph: Graph, subtask: Subtask, tune: Tune, bound: str) -> str:
    """The `.cu` text."""
    root = subtask.root
    assert isinstance(root, RowsRoot)
    tensors = emit.border(graph, subtask)
    program = RowProgram(graph, subtask, tensors, keep=False)
    parts = [
        *row_text.opening(subtask, tensors, tune, bound, root, columns=not root.along),
        emit.template("split"),
        *(_kernel(subtask, program, root, number) for number in range(len(program.walks))),
        emit.call_check(tensors),
        row_text.arranging(subtask, tensors, root),
        _places(program),
        _run(subtask, program, tensors, tune),
    ]
    return "\n\n".join(parts)


def _reductions(program: RowProgram) -> list[int]:
    return [r for walk in program.walks for r in walk.reductions]


def _kernel(subtask: Subtask, program: RowProgram, root: RowsRoot, number: int) -> str:
    walk = program.walks[number]
    needed = program.needed_for([walk], row_stores=not walk.reductions)
    common = [
        "Space space",
        "int outer",
        "int inner",
        "Planes planes",
        "int64_t rows",
        "Index length",
        "Parts parts",
    ]
    states = [f"{program.operation(r)}::State* part{r}" for r in _reductions(program)]
    parameters = ",\n    ".join([*common, *states, *emit.parameters(program.tensors, program.accesses)])
    bounds = [
        "  const Index begin = Index(blockIdx.y * parts.size), rest = length - begin;",
        "  const Index end = begin + (parts.size < rest ? Index(parts.size) : rest);",
    ]
    lines = [
        "template <typename Index, int VEC, Form FORM>",
        f"__global__ void __launch_bounds__(LANES * ROWS) {_name(subtask, number)}(\n    {parameters}) {{",
        *(bounds if walk.reductions or program.element_stores else []),
        *row_text.start_of_row(program, needed),
        "    const int64_t first = (live ? mine : rows - 1) * parts.count;",
    ]
    for level in range(1, number + 1):
        for r in program.reductions(level):
            lines += row_text.indented([program.start(r), *_merged(program, r), *program.finish(r)], 4)
        lines += row_text.indented(program.row_values(level, needed), 4)
    lines += row_text.indented([program.start(r) for r in walk.reductions], 4)
    lines += row_text.indented(row_text.long_walk(program, walk, root, "begin + lane * VEC", "end"), 4)
    for r in walk.reductions:
        operation = program.operation(r)
        lines.append(f"    s{r} = reduce<{operation}>(s{r});")
        lines.append(f"    if (live && lane == 0) part{r}[first + blockIdx.y] = s{r};")
    if not walk.reductions:
        lines += row_text.row_stores(program, "live && lane == 0 && blockIdx.y == 0")
    return "\n".join([*lines, "  }", "}"])


def _merged(program: RowProgram, r: int) -> list[str]:
    merge = f"{program.operation(r)}::merge"
    return [f"for (int p = lane; p < parts.count; p += LANES) s{r} = {merge}(s{r}, part{r}[first + p]);"]


def _name(subtask: Subtask, number: int) -> str:
    return f"{emit.kernel_name(subtask)}_walk{number + 1}"


def _places(program: RowProgram) -> str:
    """A host function that lays the states of all parts out in the workspace."""
    lines = [
        "struct Workspace {",
        *[f"  {program.operation(r)}::State* part{r};" for r in _reductions(program)],
        "  int64_t bytes;",
        "};",
        "",
        "static Workspace workspace_of(const Rows& r, const Parts& parts, void* memory) {",
        "  Workspace w = {};",
        "  const int64_t count = r.rows * parts.count;",
    ]
    lines += [f"  w.part{r} = room(memory, w.bytes, count, w.part{r});" for r in _reductions(program)]
    sizes = [
        "  return w;",
        "}",
        "",
        'extern "C" int stitch_sizes(const stitch_call* call, int64_t* workspace_bytes,',
        "                            int64_t* bound_bytes) {",
        "  if (!expected(call)) return STITCH_BAD_CALL;",
        "  Rows r;",
        "  if (const int rc = arranged(call, r)) return rc;",
        "  *workspace_bytes = workspace_of(r, parts_of(r), nullptr).bytes;",
        "  *bound_bytes = 0;",
        "  return STITCH_OK;",
        "}",
    ]
    return "\n".join([*lines, *sizes])


def _run(subtask: Subtask, program: RowProgram, tensors: emit.Border, tune: Tune) -> str:
    states = [f"w.part{r}" for r in _reductions(program)]
    common = ["r.space", "r.outer", "r.inner", "planes", "r.rows", "Index(r.length)", "parts", *states]
    arguments = ", ".join([*common, *emit.arguments(tensors, subtask.accesses)])
    root = subtask.root
    assert isinstance(root, RowsRoot)
    body = [
        "  Rows r;",
        "  if (const int rc = arranged(call, r)) return rc;",
        "  if (r.rows == 0) return STITCH_OK;",
        "  const Parts parts = parts_of(r);",
        "  const Workspace w = workspace_of(r, parts, call->workspace);",
        "  if (call->workspace_bytes < w.bytes) return STITCH_BAD_CALL;",
        "  const dim3 grid(grid_for((r.rows + ROWS - 1) / ROWS), parts.count);",
        *row_text.forms(program, root),
    ]
    packed = tune.constants["PACK"] > 1
    for number, walk in enumerate(program.walks):
        whole = walk.reductions or program.element_stores
        grid = "grid" if whole else "grid.x"
        launch = f"<<<{grid}, block_shape(), 0, stream>>>({arguments});"
        width = "PACK" if packed and whole else "1"
        calls = {
            form: f"{_name(subtask, number)}<{index}, {width}, {form}>{launch.replace('Index', index)}"
            for form, index in (("FLAT", "int"), ("PLANES", "int"), ("SCATTERED", "int64_t"))
        }
        choices = row_text.launches(root, calls)
        if width == "1":
            body += ["  {", *row_text.indented(choices, 4), "  }"]
        else:
            alone = calls["SCATTERED"].replace(", PACK,", ", 1,")
            body += row_text.if_packed(subtask, tensors, choices, [alone])
    return emit.main_function(body)
