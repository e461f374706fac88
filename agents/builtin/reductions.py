"""Softmax, norms and sums: operators that see a whole row, as expressions with reductions in them."""

import math
from typing import Any

from stitch_tui.agents.builtin.ir import Register
from stitch_tui.agents.builtin.scalar import Expr
from stitch_tui.agents.builtin.table import rows


def total(x: Expr) -> Expr:
    return x.apply("sum")


def highest(x: Expr) -> Expr:
    return x.apply("max_of")


def count(x: Expr) -> Expr:
    return x.program.add("count", Register.F32)


def mean(x: Expr) -> Expr:
    return total(x) / count(x)


def squares_about_mean(x: Expr) -> Expr:
    """Two passes: stable where sum(x^2) - n mean^2 cancels."""
    centred = x - mean(x)
    return total(centred * centred)


rows("mean.dim")(lambda x, *_, **__: mean(x))
rows("sum.dim_IntList")(lambda x, *_, **__: total(x))
rows("amax.default")(lambda x, *_, **__: highest(x))
rows("amin.default")(lambda x, *_, **__: x.apply("min_of"))


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


@rows("var.dim")
def var_flag(x: Expr, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Expr:
    return var(x, correction=int(unbiased))


@rows("std.dim")
def std_flag(x: Expr, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Expr:
    return std(x, correction=int(unbiased))


@rows("linalg_vector_norm.default")
def vector_norm(x: Expr, order: float = 2, *_: Any, **__: Any) -> Expr:
    if order == 1:
        return total(x.apply("abs"))
    return total(x * x).apply("sqrt")


@rows("layer_norm.default")
def layer_norm(
    x: Expr,
    shape: list[int],
    weight: Expr | None = None,
    bias: Expr | None = None,
    eps: float = 1e-5,
    cudnn: bool = False,
) -> Expr:
    centred = x - mean(x)
    y = centred * (total(centred * centred) / count(x) + eps).apply("rsqrt")
    return _affine(y, weight, bias)


@rows("rms_norm.default")
def rms_norm(x: Expr, shape: list[int], weight: Expr | None = None, eps: float | None = None) -> Expr:
    """`lower` fills in the dtype's epsilon where `eps` is None."""
    return _affine(x * (mean(x * x) + (eps or 0.0)).apply("rsqrt"), weight, None)


def _affine(y: Expr, weight: Expr | None, bias: Expr | None) -> Expr:
    scaled = y if weight is None else y * weight
    return scaled if bias is None else scaled + bias
