"""Arithmetic, comparison, logic and selection, with PyTorch's promotion and NaN rules."""

from collections.abc import Callable

from stitch_tui.agents.builtin.ir import Register
from stitch_tui.agents.builtin.scalar import Expr, Operand
from stitch_tui.agents.builtin.table import POINTWISE, Pointwise, pointwise


def _scaled(x: Operand, alpha: float) -> Operand:
    return x if alpha == 1 else x * alpha


@pointwise("add.Tensor", "add.Scalar")
def add(x: Expr, y: Operand, alpha: float = 1) -> Expr:
    return x + _scaled(y, alpha)


@pointwise("sub.Tensor", "sub.Scalar", "subtract.Tensor", "subtract.Scalar")
def sub(x: Expr, y: Operand, alpha: float = 1) -> Expr:
    return x - _scaled(y, alpha)


@pointwise("rsub.Tensor", "rsub.Scalar")
def rsub(x: Expr, y: Operand, alpha: float = 1) -> Expr:
    scaled = _scaled(x, alpha)
    assert isinstance(scaled, Expr)
    return y - scaled


@pointwise("mul.Tensor", "mul.Scalar", "multiply.Tensor", "multiply.Scalar")
def mul(x: Expr, y: Operand) -> Expr:
    return x * y


@pointwise("div.Tensor", "div.Scalar", "divide.Tensor", "divide.Scalar", "true_divide.Tensor")
def div(x: Expr, y: Operand) -> Expr:
    return x / y


@pointwise("addcmul.default")
def addcmul(x: Expr, a: Expr, b: Expr, value: float = 1) -> Expr:
    return x + _scaled(a * b, value)


@pointwise("addcdiv.default")
def addcdiv(x: Expr, a: Expr, b: Expr, value: float = 1) -> Expr:
    return x + _scaled(a / b, value)


@pointwise("lerp.Tensor", "lerp.Scalar")
def lerp(x: Expr, end: Expr, weight: Operand) -> Expr:
    return x + (end - x) * weight


@pointwise("square.default")
def square(x: Expr) -> Expr:
    return x * x


@pointwise("reciprocal.default")
def reciprocal(x: Expr) -> Expr:
    return 1 / x


@pointwise("pow.Tensor_Scalar")
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


@pointwise("xlogy.Tensor", "xlogy.Scalar_Other")
def xlogy(x: Expr, y: Operand) -> Expr:
    """``x log y``, 0 where x is, unless y is NaN."""
    other = y if isinstance(y, Expr) else x.program.constant(y, x.register)
    product = x.compare("eq", 0.0).select(0.0, x * other.apply("log"))
    return other.compare("ne", other).select(other, product)


@pointwise("pow.Tensor_Tensor")
def power(x: Expr, y: Expr) -> Expr:
    return x.power(y)


def _unary(function: str) -> Callable[..., Expr]:
    return lambda x: x.apply(function)


for _name in (
    *("abs", "neg", "sign", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt"),
    *(
        "erf",
        "erfc",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
    ),
    *("floor", "ceil", "trunc", "round"),
):
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


@pointwise("bitwise_not.default")
def bitwise_not(x: Expr) -> Expr:
    return x.apply("not")


@pointwise("logical_not.default", promote=False)
def logical_not(x: Expr) -> Expr:
    return x.to(Register.BOOL).apply("not")


@pointwise("isnan.default")
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


@pointwise("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar", promote=False)
def where(condition: Expr, yes: Operand, no: Operand) -> Expr:
    yes, no = _common(yes, no)
    if not isinstance(yes, Expr) and not isinstance(no, Expr):
        floats = Register.F32 in (_register_of_number(yes), _register_of_number(no))
        yes = condition.program.constant(yes, Register.F32 if floats else Register.I64)
    return condition.to(Register.BOOL).select(yes, no)


@pointwise("masked_fill.Scalar", "masked_fill.Tensor", promote=False)
def masked_fill(x: Expr, mask: Expr, value: Operand) -> Expr:
    filled = value.to(x.register) if isinstance(value, Expr) else value
    return mask.to(Register.BOOL).select(filled, x)


@pointwise("maximum.default", "max.other")
def maximum(x: Expr, y: Expr) -> Expr:
    return x.maximum(y)


@pointwise("minimum.default", "min.other")
def minimum(x: Expr, y: Expr) -> Expr:
    return x.minimum(y)


@pointwise("clamp.default", "clamp.Tensor", "hardtanh.default")
def clamp(x: Expr, low: Operand | None = None, high: Operand | None = None) -> Expr:
    """The upper limit wins when the limits cross; NaN stays NaN."""
    raised = x if low is None else x.maximum(low)
    return raised if high is None else raised.minimum(high)


@pointwise("clamp_min.default", "clamp_min.Tensor")
def clamp_min(x: Expr, low: Operand) -> Expr:
    return x.maximum(low)


@pointwise("clamp_max.default", "clamp_max.Tensor")
def clamp_max(x: Expr, high: Operand) -> Expr:
    return x.minimum(high)
