"""Sums, extrema, softmax and moments: operators that see a whole row, as formulas with reductions in them."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from stitch_tui.agents.builtin.ir import Register
from stitch_tui.agents.builtin.scalar import Expr
from stitch_tui.agents.builtin.table import Operands, rows


def total(x: Expr) -> Expr:
    return x.apply("sum")


def highest(x: Expr) -> Expr:
    return x.apply("any_of" if x.register is Register.BOOL else "max_of")


def lowest(x: Expr) -> Expr:
    return x.apply("all_of" if x.register is Register.BOOL else "min_of")


def place_of(x: Expr, op: str) -> Expr:
    """Where in its row ``argmax_of`` or ``argmin_of`` is: the first of equals, the first NaN if any."""
    number = x.to(Register.I64) if x.register is Register.BOOL else x
    return x.program.add(op, Register.I64, number)


def count(x: Expr) -> Expr:
    return x.program.add("count", Register.F32)


def mean(x: Expr) -> Expr:
    return total(x) / count(x)


def squares_about_mean(x: Expr) -> Expr:
    """Two passes: stable where sum(x^2) - n mean^2 cancels."""
    centred = x - mean(x)
    return total(centred * centred)


def _over_row(reduction: Callable[[Expr], Expr]) -> Callable[..., Expr]:
    return lambda x, *_, **__: reduction(x)


rows(
    *("mean.dim", "mean.default", "adaptive_avg_pool1d.default"),
    *("adaptive_avg_pool2d.default", "adaptive_avg_pool3d.default"),
)(_over_row(mean))
rows("sum.dim_IntList", "sum.default")(_over_row(total))
rows("prod.dim_int", "prod.default")(_over_row(lambda x: x.apply("prod_of")))
rows("amax.default", "max.default", operands=Operands.OWN)(_over_row(highest))
rows("amin.default", "min.default", operands=Operands.OWN)(_over_row(lowest))
rows("argmax.default", operands=Operands.OWN)(_over_row(lambda x: place_of(x, "argmax_of")))
rows("argmin.default", operands=Operands.OWN)(_over_row(lambda x: place_of(x, "argmin_of")))
for _name in ("any", "all"):
    rows(*(f"{_name}.{overload}" for overload in ("default", "dim", "dims")), operands=Operands.BOOL)(
        _over_row(partial(Expr.apply, op=f"{_name}_of"))
    )
rows("count_nonzero.default", "count_nonzero.dim_IntList", operands=Operands.BOOL)(
    _over_row(lambda x: total(x.to(Register.I64)))
)


@rows("max.dim", operands=Operands.OWN)
def max_with_place(x: Expr, *_: Any, **__: Any) -> tuple[Expr, Expr]:
    return highest(x), place_of(x, "argmax_of")


@rows("min.dim", operands=Operands.OWN)
def min_with_place(x: Expr, *_: Any, **__: Any) -> tuple[Expr, Expr]:
    return lowest(x), place_of(x, "argmin_of")


@rows("aminmax.default", operands=Operands.OWN)
def range_of(x: Expr, *_: Any, **__: Any) -> tuple[Expr, Expr]:
    return lowest(x), highest(x)


def _known(x: Expr) -> Expr:
    return x.compare("eq", x)


@rows("nansum.default")
def nansum(x: Expr, *_: Any, **__: Any) -> Expr:
    return total(_known(x).select(x, 0.0))


@rows("nanmean.default")
def nanmean(x: Expr, *_: Any, **__: Any) -> Expr:
    return nansum(x) / total(_known(x).to(Register.F32))


@rows("softmax.int", "_softmax.default")
def softmax(x: Expr, *_: Any, **__: Any) -> Expr:
    shifted = (x - highest(x)).apply("exp")
    return shifted / total(shifted)


@rows("log_softmax.int", "_log_softmax.default")
def log_softmax(x: Expr, *_: Any, **__: Any) -> Expr:
    shifted = x - highest(x)
    return shifted - total(shifted.apply("exp")).apply("log")


@rows("logsumexp.default")
def logsumexp(x: Expr, *_: Any, **__: Any) -> Expr:
    """A row whose maximum is infinite is its maximum: no inf - inf."""
    top = highest(x)
    shift = top.apply("abs").compare("eq", math.inf).select(0.0, top)
    return total((x - shift).apply("exp")).apply("log") + shift


@rows("var.correction")
def var(x: Expr, *_: Any, correction: float | None = None, **__: Any) -> Expr:
    return squares_about_mean(x) / (count(x) - (1 if correction is None else correction)).maximum(0)


@rows("std.correction")
def std(x: Expr, *_: Any, correction: float | None = None, **__: Any) -> Expr:
    return var(x, correction=correction).apply("sqrt")


@rows("var_mean.correction")
def var_mean(x: Expr, *_: Any, correction: float | None = None, **__: Any) -> tuple[Expr, Expr]:
    return var(x, correction=correction), mean(x)


@rows("std_mean.correction")
def std_mean(x: Expr, *_: Any, correction: float | None = None, **__: Any) -> tuple[Expr, Expr]:
    return std(x, correction=correction), mean(x)


def _flagged(formula: Callable[..., Expr | tuple[Expr, ...]]) -> Callable[..., Expr | tuple[Expr, ...]]:
    """The older overloads say `unbiased` where the newer give a correction."""

    def dims(x: Expr, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Expr | tuple[Expr, ...]:
        return formula(x, correction=int(unbiased))

    return dims


rows("var.dim")(_flagged(var))
rows("std.dim")(_flagged(std))
rows("var_mean.dim")(_flagged(var_mean))
rows("std_mean.dim")(_flagged(std_mean))


@rows("var.default")
def var_of_all(x: Expr, unbiased: bool = True) -> Expr:
    return var(x, correction=int(unbiased))


@rows("std.default")
def std_of_all(x: Expr, unbiased: bool = True) -> Expr:
    return std(x, correction=int(unbiased))


@rows("linalg_vector_norm.default", "linalg_norm.default", "norm.Scalar", "norm.ScalarOpt_dim")
def vector_norm(x: Expr, order: float | None = 2, *_: Any, **__: Any) -> Expr:
    """The p-norm; order 0 counts, infinite orders are extrema."""
    size = x.apply("abs")
    if order == math.inf:
        return highest(size)
    if order == -math.inf:
        return lowest(size)
    if order == 0:
        return total(x.compare("ne", 0.0).to(Register.F32))
    if order == 1:
        return total(size)
    if order is None or order == 2:
        return total(x * x).apply("sqrt")
    return total(size.power(order)).power(1 / order)


@rows("cosine_similarity.default")
def cosine_similarity(x: Expr, y: Expr, dim: int = 1, eps: float = 1e-8) -> Expr:
    """Each norm is at least `eps`."""
    length = total(x * x).apply("sqrt").maximum(eps) * total(y * y).apply("sqrt").maximum(eps)
    return total(x * y) / length
