"""Kernels that reduce along rows: softmax, norms, row sums, with pointwise work before and after.

The scalar program is cut at its reductions into passes over the row.  Values that a later pass needs
stay in registers while a row fits there; longer rows are read again in each pass.
"""

from dataclasses import dataclass

from stitch_tui.agents.builtin import c_scalar, emit
from stitch_tui.agents.builtin.ir import (
    REDUCTIONS,
    Instr,
    RowsRoot,
    Store,
    Subtask,
    Tune,
    constant_along_rows,
)
from stitch_tui.tools.graph import Graph

WARP = 32
WARP_ROW = 1024
"""Longest row, in elements, for which a warp per row is tried first."""
_START = {"sum": "0.0f", "max_of": "-INFINITY", "min_of": "INFINITY"}
_STEP = {"sum": "{0} + {1}", "max_of": "pick_max({0}, {1})", "min_of": "pick_min({0}, {1})"}
_OP = {"sum": "Sum", "max_of": "Highest", "min_of": "Lowest"}


def strategies(subtask: Subtask) -> list[Tune]:
    """A warp or a block for each row; the likelier one for this row length first."""
    assert isinstance(subtask.root, RowsRoot)
    warp = Tune(
        "warp-per-row",
        "One warp for each row, four rows in a block; rows stay in registers while they fit.",
        {"LANES": WARP, "ROWS": 4, "FEW": 4, "MANY": 32},
    )
    block = Tune(
        "block-per-row",
        "One block of 256 threads for each row; rows stay in registers while they fit.",
        {"LANES": 256, "ROWS": 1, "FEW": 4, "MANY": 16},
    )
    large = Tune(
        "large-block-per-row",
        "One block of 1024 threads for each row; rows stay in registers while they fit.",
        {"LANES": 1024, "ROWS": 1, "FEW": 2, "MANY": 8},
    )
    length = subtask.root.extents[1]
    if length <= WARP_ROW:
        return [warp, block]
    return [block, large, warp] if length <= 4096 else [large, block, warp]


@dataclass(frozen=True)
class _Pass:
    """One walk along the row: what is computed at each element, and what it ends in."""

    elements: tuple[int, ...]
    kept: tuple[int, ...]
    """Values taken from registers that an earlier pass filled."""
    reductions: tuple[int, ...]
    """Empty in the last pass, which stores."""


def source(graph: Graph, subtask: Subtask, tune: Tune, bound: str) -> str:
    """The `.cu` text."""
    tensors = emit.border(graph, subtask)
    parts = [
        emit.opening(subtask, tensors, tune, bound),
        emit.constants(subtask.rank, len(subtask.accesses)),
        emit.template("scalar"),
        emit.template("space"),
        emit.template("reduce"),
        _Rows(subtask, tensors, resident=True).kernel(),
        _Rows(subtask, tensors, resident=False).kernel(),
        emit.call_check(tensors),
        _run(subtask, tensors),
    ]
    return "\n\n".join(parts)


class _Rows:
    """One kernel: `resident` keeps a row in registers, else every pass reads it again."""

    def __init__(self, subtask: Subtask, tensors: emit.Border, *, resident: bool) -> None:
        self.subtask, self.tensors, self.resident = subtask, tensors, resident
        self.instrs = subtask.dag.instrs
        self.level = subtask.dag.levels()
        self.per_row = constant_along_rows(self.instrs, subtask.accesses)
        self.passes = self._passes()

    def kernel(self) -> str:
        return "\n".join([*self._signature(), *self._setup(), *self._walks(), "  }", "}"])

    # Which values each pass needs

    def _passes(self) -> list[_Pass]:
        last = max(self.level, default=0)
        done: set[int] = set()
        passes = []
        for number in range(last + 1):
            reductions = [
                i
                for i, instr in enumerate(self.instrs)
                if instr.op in REDUCTIONS and self.level[i] == number + 1
            ]
            ends = [self.instrs[r].args[0] for r in reductions]
            if number == last:
                ends = [s.instr for s in self.subtask.dag.stores if not self._row_store(s.access)]
            elements, kept = self._closure(ends, done if self.resident else set())
            done |= elements
            passes.append(_Pass(tuple(sorted(elements)), tuple(sorted(kept)), tuple(reductions)))
        return passes

    def _reductions(self, level: int) -> list[int]:
        return [i for i, instr in enumerate(self.instrs) if instr.op in REDUCTIONS and self.level[i] == level]

    def _closure(self, ends: list[int], done: set[int]) -> tuple[set[int], set[int]]:
        elements: set[int] = set()
        kept: set[int] = set()
        waiting = [e for e in ends if not self.per_row[e]]
        while waiting:
            index = waiting.pop()
            if index in elements or index in kept:
                continue
            if index in done:
                kept.add(index)
                continue
            elements.add(index)
            waiting += [a for a in self.instrs[index].args if not self.per_row[a]]
        return elements, kept

    def _row_store(self, access: int) -> bool:
        return self.subtask.accesses[access].per_row

    # Text

    def _signature(self) -> list[str]:
        name = emit.kernel_name(self.subtask)
        common = ["Space space", "int outer", "int64_t rows", "int64_t length"]
        parameters = ",\n    ".join([*common, *emit.parameters(self.tensors, self.subtask.accesses)])
        template = ["template <int ITEMS>"] if self.resident else []
        suffix = "" if self.resident else "_long"
        return [
            *template,
            f"__global__ void __launch_bounds__(LANES * ROWS) {name}{suffix}(\n    {parameters}) {{",
        ]

    def _setup(self) -> list[str]:
        return [
            "  const int lane = threadIdx.x;",
            "  int64_t row = (int64_t)blockIdx.x * ROWS + threadIdx.y;",
            "  for (; row < rows; row += (int64_t)gridDim.x * ROWS) {",
            "    int64_t at[OPERANDS] = {};",
            "    locate(space, 0, outer, row, at);",
            *[f"    float keep{i}[ITEMS];" for i in sorted({k for p in self.passes for k in p.kept})],
            *self._row_values(0),
        ]

    def _walks(self) -> list[str]:
        lines = []
        for number, walk in enumerate(self.passes):
            lines += [self._start(r) for r in walk.reductions]
            if walk.reductions or walk.elements or walk.kept or self._element_stores(number):
                lines += [*self._loop(), *self._element_lines(walk), *self._ending(number, walk), "    }"]
            lines += [self._finish(r) for r in walk.reductions]
            if walk.reductions:
                lines += self._row_values(number + 1)
        return [*lines, *self._row_stores()]

    def _start(self, reduction: int) -> str:
        return f"    float v{reduction} = {_START[self.instrs[reduction].op]};"

    def _finish(self, reduction: int) -> str:
        return f"    v{reduction} = reduce<LANES>(v{reduction}, {_OP[self.instrs[reduction].op]}());"

    def _loop(self) -> list[str]:
        if self.resident:
            return [
                "#pragma unroll",
                "    for (int i = 0; i < ITEMS; ++i) {",
                "      const int64_t d = lane + i * LANES;",
                "      if (d >= length) continue;",
            ]
        return ["    for (int64_t d = lane; d < length; d += LANES) {"]

    def _element_lines(self, walk: _Pass) -> list[str]:
        later = {k for p in self.passes for k in p.kept}
        lines = [f"      const {self.instrs[k].register.value} v{k} = keep{k}[i];" for k in walk.kept]
        for index in walk.elements:
            lines.append(self._value(index, self.instrs[index], "      "))
            if index in later:
                lines.append(f"      keep{index}[i] = v{index};")
        return lines

    def _value(self, index: int, instr: Instr, indent: str) -> str:
        if instr.op == "load":
            number = int(instr.literal)
            access = self.subtask.accesses[number]
            along = "" if access.per_row else f" + d * space.inner[{number}]"
            element = f"{emit.operand_name(self.tensors, access, number)}[at[{number}]{along}]"
            return (
                f"{indent}const {instr.register.value} v{index} = {c_scalar.widened(access.dtype, element)};"
            )
        if instr.op == "count":
            return f"{indent}const float v{index} = (float)length;"
        return emit.assignments(self.instrs, [index], indent)[0]

    def _ending(self, number: int, walk: _Pass) -> list[str]:
        lines = []
        for r in walk.reductions:
            instr = self.instrs[r]
            lines.append(f"      v{r} = {_STEP[instr.op].format(f'v{r}', f'v{instr.args[0]}')};")
        return lines + self._element_stores(number)

    def _element_stores(self, number: int) -> list[str]:
        if number != len(self.passes) - 1:
            return []
        return [
            f"      {self._target(s.access)} + d * space.inner[{s.access}]] = {self._stored(s)};"
            for s in self.subtask.dag.stores
            if not self._row_store(s.access)
        ]

    def _row_values(self, level: int) -> list[str]:
        wanted = [
            i
            for i, instr in enumerate(self.instrs)
            if self.per_row[i] and self.level[i] == level and instr.op not in REDUCTIONS
        ]
        return [self._value(i, self.instrs[i], "    ") for i in wanted]

    def _row_stores(self) -> list[str]:
        stores = [s for s in self.subtask.dag.stores if self._row_store(s.access)]
        return [f"    if (lane == 0) {self._target(s.access)}] = {self._stored(s)};" for s in stores]

    def _target(self, access: int) -> str:
        return f"{emit.operand_name(self.tensors, self.subtask.accesses[access], access)}[at[{access}]"

    def _stored(self, store: Store) -> str:
        return c_scalar.narrowed(self.subtask.accesses[store.access].dtype, f"v{store.instr}")


def _run(subtask: Subtask, tensors: emit.Border) -> str:
    root, accesses = subtask.root, subtask.accesses
    assert isinstance(root, RowsRoot)
    name = emit.kernel_name(subtask)
    arguments = ", ".join(["space", "outer", "rows", "length", *emit.arguments(tensors, accesses)])
    launch = f"<<<grid_for((rows + ROWS - 1) / ROWS), dim3(LANES, ROWS), 0, stream>>>({arguments})"
    body = [
        "  Space space = empty_space();",
        *emit.widening(tensors, accesses, root.axis),
        *emit.placing(tensors, accesses, root.axis),
        f"  const int64_t length = points(space, {root.axis}, {root.inner});",
        f"  const int64_t rows = points(space, 0, {root.axis})"
        f" * points(space, {root.axis + root.inner}, RANK - {root.axis + root.inner});",
        *emit.covering(tensors, accesses, "rows * length", "rows"),
        "  if (rows == 0) return STITCH_OK;",
        f"  const int inner = coalesce(space, {root.axis}, {root.inner});",
        "  if (inner > 1) return STITCH_UNSUPPORTED_SHAPE;",
        f"  const int along = {root.axis};",
        "  for (int o = 0; o < OPERANDS; ++o) space.inner[o] = inner ? space.stride[o][along] : 0;",
        f"  if (inner) drop_dimension(space, {root.axis});",
        "  const int outer = coalesce(space, 0, space.rank);",
        "  if (length <= LANES * FEW) {",
        f"    {name}<FEW>{launch};",
        "  } else if (length <= LANES * MANY) {",
        f"    {name}<MANY>{launch};",
        "  } else {",
        f"    {name}_long{launch};",
        "  }",
    ]
    return emit.main_function(body)
