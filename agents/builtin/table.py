"""The registry of operators; `operators` imports the modules that fill it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from stitch_tui.agents.builtin.scalar import Expr

Formula = TypeVar("Formula", bound=Callable[..., "Expr | tuple[Expr, ...]"])


@dataclass(frozen=True)
class Pointwise:
    """An operator whose result at a point needs its operands at that point only."""

    formula: Callable[..., Expr | tuple[Expr, ...]]
    promote: bool = True
    """Operands are brought to one register type first."""


class Operands(StrEnum):
    """The type in which a row operator takes its operands."""

    RESULT = "of the result"
    OWN = "their own"
    BOOL = "truth values"


@dataclass(frozen=True)
class Rows:
    """An operator that sees whole rows, through reductions in its formula."""

    formula: Callable[..., Expr | tuple[Expr, ...]]
    operands: Operands = Operands.RESULT


POINTWISE: dict[str, Pointwise] = {}
ROWS: dict[str, Rows] = {}
CHANNELS: dict[str, tuple[int, ...]] = {}
"""Operators whose arguments at these positions have one element for each index of dimension 1."""
TUPLES = frozenset(
    f"aten.{name}"
    for name in (
        "_native_batch_norm_legit_functional.default",
        "_native_batch_norm_legit.no_stats",
        "_native_batch_norm_legit_no_training.default",
        "var_mean.dim",
        "var_mean.correction",
        "std_mean.dim",
        "std_mean.correction",
        "max.dim",
        "min.dim",
        "aminmax.default",
        *(f"adaptive_max_pool{n}d.default" for n in (1, 2, 3)),
    )
)
"""Operators with several results, which ``getitem`` nodes pick from."""

IDENTITY = frozenset(
    f"aten.{name}.default" for name in ("clone", "detach", "alias", "lift_fresh_copy", "expand", "contiguous")
)
COPIES = frozenset({"aten.clone.default", "aten.contiguous.default"})
"""Of `IDENTITY`, those that may be a kernel in PyTorch."""
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


def pointwise(*names: str, promote: bool = True) -> Callable[[Formula], Formula]:
    def register(formula: Formula) -> Formula:
        for name in names:
            POINTWISE[f"aten.{name}"] = Pointwise(formula, promote)
        return formula

    return register


def rows(*names: str, operands: Operands = Operands.RESULT) -> Callable[[Formula], Formula]:
    def register(formula: Formula) -> Formula:
        for name in names:
            ROWS[f"aten.{name}"] = Rows(formula, operands)
        return formula

    return register
