"""The operator table: each ATen operator as a scalar expression with PyTorch's own semantics.

This is the one place to add a pointwise operator or a reduction along rows.  Formulas follow the
definitions in PyTorch's documentation, evaluated in f32; comparisons let NaN through as PyTorch does.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stitch_tui.agents.builtin.ir import Register
from stitch_tui.agents.builtin.scalar import Expr, Operand

SQRT_HALF = 0.7071067811865476
GELU_BETA = 0.7978845608028654  # sqrt(2 / pi)
GELU_KAPPA = 0.044715
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


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


def _pointwise(*names: str, promote: bool = True) -> Callable[[Callable[..., Expr]], Callable[..., Expr]]:
    def register(formula: Callable[..., Expr]) -> Callable[..., Expr]:
        for name in names:
            POINTWISE[f"aten.{name}"] = Pointwise(formula, promote)
        return formula

    return register


def _rows(*names: str) -> Callable[[Callable[..., Expr]], Callable[..., Expr]]:
    def register(formula: Callable[..., Expr]) -> Callable[..., Expr]:
        for name in names:
            ROWS[f"aten.{name}"] = formula
        return formula

    return register


# Arithmetic


def _scaled(x: Operand, alpha: float) -> Operand:
    return x if alpha == 1 else x * alpha


@_pointwise("add.Tensor", "add.Scalar")
def add(x: Expr, y: Operand, alpha: float = 1) -> Expr:
    return x + _scaled(y, alpha)


@_pointwise("sub.Tensor", "sub.Scalar")
def sub(x: Expr, y: Operand, alpha: float = 1) -> Expr:
    return x - _scaled(y, alpha)


@_pointwise("rsub.Tensor", "rsub.Scalar")
def rsub(x: Expr, y: Operand, alpha: float = 1) -> Expr:
    scaled = _scaled(x, alpha)
    assert isinstance(scaled, Expr)
    return y - scaled


@_pointwise("mul.Tensor", "mul.Scalar")
def mul(x: Expr, y: Operand) -> Expr:
    return x * y


@_pointwise("div.Tensor", "div.Scalar")
def div(x: Expr, y: Operand) -> Expr:
    return x / y


@_pointwise("addcmul.default")
def addcmul(x: Expr, a: Expr, b: Expr, value: float = 1) -> Expr:
    return x + _scaled(a * b, value)


@_pointwise("addcdiv.default")
def addcdiv(x: Expr, a: Expr, b: Expr, value: float = 1) -> Expr:
    return x + _scaled(a / b, value)


@_pointwise("lerp.Tensor", "lerp.Scalar")
def lerp(x: Expr, end: Expr, weight: Operand) -> Expr:
    return x + (end - x) * weight


@_pointwise("square.default")
def square(x: Expr) -> Expr:
    return x * x


@_pointwise("reciprocal.default")
def reciprocal(x: Expr) -> Expr:
    return 1 / x


@_pointwise("pow.Tensor_Scalar")
def power_of(x: Expr, exponent: float) -> Expr:
    """PyTorch special-cases the small exponents; the others go to powf."""
    special: dict[float, Callable[[], Expr]] = {
        1: lambda: x,
        2: lambda: x * x,
        3: lambda: x * x * x,
        0.5: lambda: x.apply("sqrt"),
        -0.5: lambda: x.apply("rsqrt"),
        -1: lambda: 1 / x,
        -2: lambda: 1 / (x * x),
    }
    return special[exponent]() if exponent in special else x.power(exponent)


@_pointwise("pow.Tensor_Tensor")
def power(x: Expr, y: Expr) -> Expr:
    return x.power(y)


def _unary(function: str) -> Callable[..., Expr]:
    return lambda x: x.apply(function)


for _name in (
    "abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh "
    "asinh acosh atanh erf erfc floor ceil trunc round sign"
).split():
    POINTWISE[f"aten.{_name}.default"] = Pointwise(_unary(_name))


# Comparison, logic, selection


def _comparison(operator: str) -> Callable[..., Expr]:
    return lambda x, y: x.compare(operator, y)


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    for _overload in ("Scalar", "Tensor"):
        POINTWISE[f"aten.{_name}.{_overload}"] = Pointwise(_comparison(_name))


def _logic(operator: str) -> Callable[..., Expr]:
    return lambda x, y: x.to(Register.BOOL).logic(operator, y.to(Register.BOOL))


for _name in ("and", "or", "xor"):
    POINTWISE[f"aten.logical_{_name}.default"] = Pointwise(_logic(_name), promote=False)


def _bitwise(operator: str) -> Callable[..., Expr]:
    return lambda x, y: x.logic(operator, y)


for _name in ("and", "or", "xor"):
    for _overload in ("Scalar", "Tensor"):
        POINTWISE[f"aten.__{_name}__.{_overload}"] = Pointwise(_bitwise(_name))
        POINTWISE[f"aten.bitwise_{_name}.{_overload}"] = Pointwise(_bitwise(_name))


@_pointwise("bitwise_not.default")
def bitwise_not(x: Expr) -> Expr:
    return x.apply("not")


@_pointwise("logical_not.default", promote=False)
def logical_not(x: Expr) -> Expr:
    return x.to(Register.BOOL).apply("not")


@_pointwise("isnan.default")
def isnan(x: Expr) -> Expr:
    return x.compare("ne", x)


def _common(*values: Operand) -> list[Operand]:
    """Branches of a selection in one register type: float outranks integer outranks bool."""
    order = [Register.BOOL, Register.I64, Register.F32]
    kinds = [v.register if isinstance(v, Expr) else _register_of_number(v) for v in values]
    target = max(kinds, key=order.index)
    return [v.to(target) if isinstance(v, Expr) else v for v in values]


def _register_of_number(value: float | int | bool) -> Register:
    if isinstance(value, bool):
        return Register.BOOL
    return Register.I64 if isinstance(value, int) else Register.F32


@_pointwise("where.self", "where.ScalarOther", "where.ScalarSelf", promote=False)
def where(condition: Expr, yes: Operand, no: Operand) -> Expr:
    yes, no = _common(yes, no)
    return condition.to(Register.BOOL).select(yes, no)


@_pointwise("masked_fill.Scalar", "masked_fill.Tensor", promote=False)
def masked_fill(x: Expr, mask: Expr, value: Operand) -> Expr:
    filled = value.to(x.register) if isinstance(value, Expr) else value
    return mask.to(Register.BOOL).select(filled, x)


@_pointwise("maximum.default")
def maximum(x: Expr, y: Expr) -> Expr:
    return x.maximum(y)


@_pointwise("minimum.default")
def minimum(x: Expr, y: Expr) -> Expr:
    return x.minimum(y)


@_pointwise("clamp.default", "clamp.Tensor", "hardtanh.default")
def clamp(x: Expr, low: Operand | None = None, high: Operand | None = None) -> Expr:
    """The upper limit wins when the limits cross; NaN stays NaN."""
    raised = x if low is None else x.maximum(low)
    return raised if high is None else raised.minimum(high)


@_pointwise("clamp_min.default", "clamp_min.Tensor")
def clamp_min(x: Expr, low: Operand) -> Expr:
    return x.maximum(low)


@_pointwise("clamp_max.default", "clamp_max.Tensor")
def clamp_max(x: Expr, high: Operand) -> Expr:
    return x.minimum(high)


# Activations

POINTWISE["aten.hardtanh.default"] = Pointwise(lambda x, low=-1.0, high=1.0: clamp(x, low, high))


@_pointwise("relu.default")
def relu(x: Expr) -> Expr:
    return x.maximum(0)


@_pointwise("relu6.default")
def relu6(x: Expr) -> Expr:
    return clamp(x, 0, 6)


@_pointwise("leaky_relu.default")
def leaky_relu(x: Expr, slope: float = 0.01) -> Expr:
    return x.compare("gt", 0).select(x, x * slope)


@_pointwise("prelu.default", "_prelu_kernel.default")
def prelu(x: Expr, slope: Expr) -> Expr:
    return x.compare("gt", 0).select(x, x * slope)


@_pointwise("threshold.default")
def threshold(x: Expr, limit: float, value: float) -> Expr:
    return x.compare("le", limit).select(value, x)


@_pointwise("sigmoid.default")
def sigmoid(x: Expr) -> Expr:
    return 1 / (1 + (-x).apply("exp"))


@_pointwise("silu.default")
def silu(x: Expr) -> Expr:
    return x / (1 + (-x).apply("exp"))


@_pointwise("gelu.default")
def gelu(x: Expr, approximate: str = "none") -> Expr:
    if approximate == "tanh":
        return 0.5 * x * (1 + (GELU_BETA * (x + GELU_KAPPA * x * x * x)).apply("tanh"))
    return 0.5 * x * (1 + (x * SQRT_HALF).apply("erf"))


@_pointwise("softplus.default")
def softplus(x: Expr, beta: float = 1, threshold: float = 20) -> Expr:
    scaled = x * beta
    return scaled.compare("gt", threshold).select(x, scaled.apply("exp").apply("log1p") / beta)


@_pointwise("elu.default")
def elu(x: Expr, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Expr:
    negative = (x * input_scale).apply("expm1") * (alpha * scale)
    return x.compare("lt", 0).select(negative, x * scale)


@_pointwise("celu.default")
def celu(x: Expr, alpha: float = 1) -> Expr:
    return elu(x, alpha, 1, 1 / alpha)


@_pointwise("selu.default")
def selu(x: Expr) -> Expr:
    return elu(x, SELU_ALPHA, SELU_SCALE)


@_pointwise("hardsigmoid.default")
def hardsigmoid(x: Expr) -> Expr:
    return clamp(x + 3, 0, 6) / 6


@_pointwise("hardswish.default")
def hardswish(x: Expr) -> Expr:
    return x * clamp(x + 3, 0, 6) / 6


@_pointwise("mish.default")
def mish(x: Expr) -> Expr:
    return x * x.apply("exp").apply("log1p").apply("tanh")


@_pointwise("log_sigmoid.default")
def log_sigmoid(x: Expr) -> Expr:
    return x.minimum(0) - (-x.apply("abs")).apply("exp").apply("log1p")


@_pointwise("hardshrink.default")
def hardshrink(x: Expr, limit: float = 0.5) -> Expr:
    inside = x.compare("ge", -limit).logic("and", x.compare("le", limit))
    return inside.select(0, x)


@_pointwise("softshrink.default")
def softshrink(x: Expr, limit: float = 0.5) -> Expr:
    below = x.compare("lt", -limit).select(x + limit, x * 0)
    return x.compare("gt", limit).select(x - limit, below)


@_pointwise("dropout.default")
def dropout(x: Expr, p: float, train: bool) -> Expr:
    """Only in evaluation mode, where it is the identity; `lower` refuses the other."""
    return x


# Reductions along a row


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


_rows("mean.dim")(lambda x, *_, **__: mean(x))
_rows("sum.dim_IntList")(lambda x, *_, **__: total(x))
_rows("amax.default")(lambda x, *_, **__: highest(x))
_rows("amin.default")(lambda x, *_, **__: x.apply("min_of"))


@_rows("softmax.int", "_softmax.default")
def softmax(x: Expr, *_: Any, **__: Any) -> Expr:
    shifted = (x - highest(x)).apply("exp")
    return shifted / total(shifted)


@_rows("log_softmax.int", "_log_softmax.default")
def log_softmax(x: Expr, *_: Any, **__: Any) -> Expr:
    shifted = x - highest(x)
    return shifted - total(shifted.apply("exp")).apply("log")


@_rows("logsumexp.default")
def logsumexp(x: Expr, *_: Any, **__: Any) -> Expr:
    """A row whose maximum is infinite is its maximum: no inf - inf."""
    top = highest(x)
    shift = top.apply("abs").compare("eq", math.inf).select(0.0, top)
    return total((x - shift).apply("exp")).apply("log") + shift


@_rows("var.correction")
def var(x: Expr, *_: Any, correction: float | None = None, **__: Any) -> Expr:
    return squares_about_mean(x) / (count(x) - (1 if correction is None else correction)).maximum(0)


@_rows("std.correction")
def std(x: Expr, *_: Any, correction: float | None = None, **__: Any) -> Expr:
    return var(x, correction=correction).apply("sqrt")


@_rows("var.dim")
def var_flag(x: Expr, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Expr:
    return var(x, correction=int(unbiased))


@_rows("std.dim")
def std_flag(x: Expr, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Expr:
    return std(x, correction=int(unbiased))


@_rows("linalg_vector_norm.default")
def vector_norm(x: Expr, order: float = 2, *_: Any, **__: Any) -> Expr:
    if order == 1:
        return total(x.apply("abs"))
    return total(x * x).apply("sqrt")


@_rows("layer_norm.default")
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


@_rows("rms_norm.default")
def rms_norm(x: Expr, shape: list[int], weight: Expr | None = None, eps: float | None = None) -> Expr:
    """`lower` fills in the dtype's epsilon where `eps` is None."""
    return _affine(x * (mean(x * x) + (eps or 0.0)).apply("rsqrt"), weight, None)


def _affine(y: Expr, weight: Expr | None, bias: Expr | None) -> Expr:
    scaled = y if weight is None else y * weight
    return scaled if bias is None else scaled + bias
