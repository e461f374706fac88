"""The registry of operators; `operators` imports the modules that fill it."""

from collections.abc import Callable
from dataclasses import dataclass

from stitch_tui.agents.builtin.scalar import Expr


@dataclass(frozen=True)
class Pointwise:
    """An operator whose result at a point needs its operands at that point only."""

    formula: Callable[..., Expr]
    promote: bool = True
    """Operands are brought to one register type first."""


POINTWISE: dict[str, Pointwise] = {}
ROWS: dict[str, Callable[..., Expr]] = {}
"""Operators that reduce along a row; their formulas see whole rows through `total`, `highest`, `mean`."""

IDENTITY = frozenset(
    f"aten.{name}.default" for name in ("clone", "detach", "alias", "lift_fresh_copy", "expand", "contiguous")
)
RESHAPES = frozenset(
    f"aten.{name}"
    for name in (
        "view.default",
        "reshape.default",
        "_unsafe_view.default",
        "unsqueeze.default",
        "squeeze.dim",
        "squeeze.dims",
        "squeeze.default",
        "flatten.using_ints",
        "unflatten.int",
    )
)
CASTS = frozenset({"aten._to_copy.default", "aten.to.dtype"})


def pointwise(*names: str, promote: bool = True) -> Callable[[Callable[..., Expr]], Callable[..., Expr]]:
    def register(formula: Callable[..., Expr]) -> Callable[..., Expr]:
        for name in names:
            POINTWISE[f"aten.{name}"] = Pointwise(formula, promote)
        return formula

    return register


def rows(*names: str) -> Callable[[Callable[..., Expr]], Callable[..., Expr]]:
    def register(formula: Callable[..., Expr]) -> Callable[..., Expr]:
        for name in names:
            ROWS[f"aten.{name}"] = formula
        return formula

    return register
