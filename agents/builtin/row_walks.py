"""A scalar program over rows, cut at its reductions into walks along the row, and its statements in C."""

from collections.abc import Iterable
from dataclasses import dataclass

from stitch_tui.agents.builtin import c_scalar, emit
from stitch_tui.agents.builtin.ir import REDUCTIONS, Instr, Register, Store, Subtask, constant_along_rows
from stitch_tui.agents.builtin.one_pass import in_one_pass
from stitch_tui.tools.graph import Graph

_OPERATION = {
    "sum": "Sum",
    "prod_of": "Product",
    "max_of": "Highest",
    "min_of": "Lowest",
    "any_of": "Any",
    "all_of": "All",
    "argmax_of": "HighestPlace",
    "argmin_of": "LowestPlace",
    "moments": "Moments",
    "exponentials": "Exponentials",
}
_CHEAP = frozenset({"add", "sub", "mul", "neg", "abs", "max", "min", "cast"})
"""Computed again from one value of the row rather than kept in a register beside it."""


@dataclass(frozen=True)
class Walk:
    """One walk along the row: what is computed at each element, and what it ends in."""

    elements: tuple[int, ...]
    kept: tuple[int, ...]
    """Values taken from registers that an earlier walk filled."""
    reductions: tuple[int, ...]
    """Empty in the last walk, which stores."""


class RowProgram:
    """The walks of a subtask.

    With `keep`, later ones take values of earlier ones from registers; without, each reads the row again,
    so that as few as possible are made of it.
    """

    def __init__(self, graph: Graph, subtask: Subtask, tensors: emit.Border, *, keep: bool) -> None:
        self.tensors, self.accesses = tensors, subtask.accesses
        self.whole = {
            i for i, access in enumerate(subtask.accesses) if graph.spec(access.value).numel == subtask.points
        }
        """Accesses with an element for each point, as far as this graph goes."""
        dag = subtask.dag if keep else in_one_pass(subtask.dag)
        self.instrs, self.stores = dag.instrs, dag.stores
        self.level = dag.levels()
        self.per_row = constant_along_rows(self.instrs, subtask.accesses)
        self.walks = self._walks(keep)
        self.later = sorted({k for w in self.walks for k in w.kept})

    # Which values each walk needs

    def _walks(self, keep: bool) -> list[Walk]:
        last = max(self.level, default=0)
        done: set[int] = set()
        walks = []
        for number in range(last + 1):
            reductions = self.reductions(number + 1)
            ends = [self.instrs[r].args[0] for r in reductions]
            if number == last:
                ends = [s.instr for s in self.element_stores]
            elements, kept = self._closure(ends, done if keep else set())
            done |= elements
            walks.append(Walk(tuple(sorted(elements)), tuple(sorted(kept)), tuple(reductions)))
        return walks

    def _closure(self, ends: Iterable[int], done: set[int]) -> tuple[set[int], set[int]]:
        elements: set[int] = set()
        kept: set[int] = set()
        waiting = [e for e in ends if not self.per_row[e]]
        while waiting:
            index = waiting.pop()
            if index in elements or index in kept:
                continue
            along = [a for a in self.instrs[index].args if not self.per_row[a]]
            if index in done and not (self.instrs[index].op in _CHEAP and len(set(along)) == 1):
                kept.add(index)
                continue
            elements.add(index)
            waiting += along
        return elements, kept

    def reductions(self, level: int) -> list[int]:
        """Those that are known after `level` walks."""
        return [i for i, instr in enumerate(self.instrs) if instr.op in REDUCTIONS and self.level[i] == level]

    @property
    def element_stores(self) -> list[Store]:
        return [s for s in self.stores if not self.accesses[s.access].per_row]

    @property
    def row_stores(self) -> list[Store]:
        return [s for s in self.stores if self.accesses[s.access].per_row]

    def loads(self, walk: Walk) -> list[int]:
        return [i for i in walk.elements if self.instrs[i].op == "load"]

    # Statements

    def operand(self, access: int) -> str:
        return emit.operand_name(self.tensors, self.accesses[access], access)

    def step(self, access: int) -> str:
        """How far apart an operand's neighbours along a row are."""
        known = "FORM != SCATTERED" if access in self.whole else "FORM == FLAT"
        return f"{known} ? 1 : space.inner[{access}]"

    def c_type(self, access: int) -> str:
        return c_scalar.C_TYPE[self.accesses[access].dtype]

    def operation(self, reduction: int) -> str:
        """``Sum<float>``."""
        instr = self.instrs[reduction]
        return f"{_OPERATION[instr.op]}<{self.instrs[instr.args[0]].register.value}>"

    def start(self, reduction: int) -> str:
        return f"{self.operation(reduction)}::State s{reduction} = {self.operation(reduction)}::start();"

    def finish(self, reduction: int) -> list[str]:
        """The threads' states become the row's value."""
        register = self.instrs[reduction].register.value
        return [
            f"s{reduction} = reduce<{self.operation(reduction)}>(s{reduction});",
            f"const {register} v{reduction} = result(s{reduction});",
        ]

    def take(self, reduction: int, place: str) -> str:
        argument = self.instrs[reduction].args[0]
        return f"take<{self.operation(reduction)}>(s{reduction}, v{argument}, {place});"

    def element(self, index: int, pack: str) -> str:
        """A value at element ``e`` of a pack."""
        instr = self.instrs[index]
        if instr.op == "load":
            value = c_scalar.widened(self.accesses[int(instr.literal)].dtype, pack)
            return f"const {instr.register.value} v{index} = {value};"
        return emit.assignments(self.instrs, [index], "")[0]

    def row_values(self, level: int, needed: set[int]) -> list[str]:
        """Those of `needed` that are known after `level` walks."""
        known = sorted(i for i in needed if self.level[i] == level and self.instrs[i].op not in REDUCTIONS)
        return [self._row_value(i, self.instrs[i]) for i in known]

    def needed_for(self, walks: Iterable[Walk], *, row_stores: bool) -> set[int]:
        """The values, the same along the row, that walks and stores of results for each row take."""
        waiting = [s.instr for s in self.row_stores] if row_stores else []
        for walk in walks:
            last = not walk.reductions
            ends = [s.instr for s in self.element_stores] if last else list(walk.reductions)
            waiting += [*ends, *(a for i in (*walk.elements, *ends) for a in self.instrs[i].args)]
        found: set[int] = set()
        while waiting:
            index = waiting.pop()
            if self.per_row[index] and index not in found:
                found.add(index)
                waiting += self.instrs[index].args
        return found

    def _row_value(self, index: int, instr: Instr) -> str:
        if instr.op == "load":
            number = int(instr.literal)
            value = c_scalar.widened(self.accesses[number].dtype, f"{self.operand(number)}[at[{number}]]")
            return f"const {instr.register.value} v{index} = {value};"
        if instr.op == "count":
            return f"const {Register.F32.value} v{index} = (float)length;"
        return emit.assignments(self.instrs, [index], "")[0]

    def stored(self, store: Store) -> str:
        return c_scalar.narrowed(self.accesses[store.access].dtype, f"v{store.instr}")

    def row_store_lines(self) -> list[str]:
        return [f"{self.operand(s.access)}[at[{s.access}]] = {self.stored(s)};" for s in self.row_stores]
