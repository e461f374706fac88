"""Places of elements: integers that a kernel computes, where to look, and the registry of rules that look."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from stitch_tui.agents.builtin import shapes
from stitch_tui.agents.builtin.ir import Register
from stitch_tui.agents.builtin.scalar import Expr
from stitch_tui.tools.graph import Graph, Node

Index = Expr | int


@dataclass(frozen=True)
class Look:
    """Where a value is looked at: one integer for each dimension, and whether that place exists."""

    at: tuple[Index, ...]
    guard: Expr | None = None
    """None: always."""

    def moved(self, dim: int, index: Index) -> "Look":
        """The same place but for one dimension."""
        return replace(self, at=(*self.at[:dim], index, *self.at[dim + 1 :]))

    def where(self, condition: Expr) -> "Look":
        """Looked at only where `condition` holds as well."""
        guard = condition if self.guard is None else self.guard.logic("and", condition)
        return replace(self, guard=guard)


class Reader(Protocol):
    """What rules ask for."""

    graph: Graph

    def read(self, value: str, look: Look) -> Expr: ...

    def broadcast(self, value: str, node: Node, look: Look) -> Expr: ...

    def size(self, value: str, dim: int) -> Index: ...

    def index(self, number: int) -> Expr: ...


Rule = Callable[[Reader, Node, Look], Expr]
MOVES: dict[str, Rule] = {}
"""Rules by operator."""
ONCE: set[str] = set()
"""Operators that read no element twice: what feeds them may be computed in the same kernel."""


def moves(*names: str, once: bool = True) -> Callable[[Rule], Rule]:
    """Register a rule for operators; `once`: it reads no element twice."""

    def register(rule: Rule) -> Rule:
        for name in names:
            MOVES[f"aten.{name}"] = rule
            if once:
                ONCE.add(f"aten.{name}")
        return rule

    return register


# Integer arithmetic; what is known now is computed now.


def _binary(
    op: str, known: Callable[[int, int], int], neutral: int | None
) -> Callable[[Index, Index], Index]:
    def apply(a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return known(a, b)
        if isinstance(b, int) and b == neutral:
            return a
        program = a.program if isinstance(a, Expr) else b.program  # type: ignore[union-attr]
        a, b = (i if isinstance(i, Expr) else program.constant(i, Register.I64) for i in (a, b))
        return program.add(op, Register.I64, a, b)

    return apply


plus = _binary("plus", lambda a, b: a + b, 0)
minus = _binary("minus", lambda a, b: a - b, 0)
times = _binary("times", lambda a, b: a * b, 1)
quotient = _binary("quotient", lambda a, b: a // b, 1)
"""Of numbers that are not negative."""
remainder = _binary("remainder", lambda a, b: a % b, None)
"""Of numbers that are not negative."""


def operand(node: Node, position: int = 0) -> str:
    """Value id of an argument."""
    return shapes.ref(node.args[position])


def dim_of(node: Node, position: int, rank: int, default: int = 0) -> int:
    """The argument ``dim``, counted from the first dimension."""
    return int(shapes.argument(node, position, "dim", default)) % rank


def rank_of(reader: Reader, value: str) -> int:
    """Dimensions of a value."""
    return len(reader.graph.spec(value).shape)


def expr_of(reader: Reader, index: Index) -> Expr:
    """An integer as an expression, whether or not it is known now."""
    return index if isinstance(index, Expr) else reader.index(index)


def float_of(reader: Reader, index: Index) -> Expr:
    """An integer as a float expression."""
    return expr_of(reader, index).to(Register.F32)
