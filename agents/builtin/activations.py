"""Activation functions by PyTorch's documented formulas, evaluated in f32."""

from stitch_tui.agents.builtin.arithmetic import clamp
from stitch_tui.agents.builtin.scalar import Expr
from stitch_tui.agents.builtin.table import POINTWISE, Pointwise, pointwise

SQRT_HALF = 0.7071067811865476
GELU_BETA = 0.7978845608028654  # sqrt(2 / pi)
GELU_KAPPA = 0.044715
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805

POINTWISE["aten.hardtanh.default"] = Pointwise(lambda x, low=-1.0, high=1.0: clamp(x, low, high))


@pointwise("relu.default")
def relu(x: Expr) -> Expr:
    return x.maximum(0)


@pointwise("relu6.default")
def relu6(x: Expr) -> Expr:
    return clamp(x, 0, 6)


@pointwise("leaky_relu.default")
def leaky_relu(x: Expr, slope: float = 0.01) -> Expr:
    return x.compare("gt", 0).select(x, x * slope)


@pointwise("prelu.default")
def prelu(x: Expr, slope: Expr) -> Expr:
    """Slopes lie along the second dimension; `lower` refuses ranks in which that is not the last."""
    return x.compare("gt", 0).select(x, x * slope)


@pointwise("threshold.default")
def threshold(x: Expr, limit: float, value: float) -> Expr:
    return x.compare("le", limit).select(value, x)


@pointwise("sigmoid.default")
def sigmoid(x: Expr) -> Expr:
    return 1 / (1 + (-x).apply("exp"))


@pointwise("silu.default")
def silu(x: Expr) -> Expr:
    return x / (1 + (-x).apply("exp"))


@pointwise("gelu.default")
def gelu(x: Expr, approximate: str = "none") -> Expr:
    if approximate == "tanh":
        return 0.5 * x * (1 + (GELU_BETA * (x + GELU_KAPPA * x * x * x)).apply("tanh"))
    return 0.5 * x * (1 + (x * SQRT_HALF).apply("erf"))


@pointwise("softplus.default")
def softplus(x: Expr, beta: float = 1, threshold: float = 20) -> Expr:
    scaled = x * beta
    return scaled.compare("gt", threshold).select(x, scaled.apply("exp").apply("log1p") / beta)


@pointwise("elu.default")
def elu(x: Expr, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Expr:
    negative = (x * input_scale).apply("expm1") * (alpha * scale)
    return x.compare("lt", 0).select(negative, x * scale)


@pointwise("celu.default")
def celu(x: Expr, alpha: float = 1) -> Expr:
    return elu(x, alpha, 1, 1 / alpha)


@pointwise("selu.default")
def selu(x: Expr) -> Expr:
    return elu(x, SELU_ALPHA, SELU_SCALE)


@pointwise("hardsigmoid.default")
def hardsigmoid(x: Expr) -> Expr:
    return clamp(x + 3, 0, 6) / 6


@pointwise("hardswish.default")
def hardswish(x: Expr) -> Expr:
    return x * clamp(x + 3, 0, 6) / 6


@pointwise("mish.default")
def mish(x: Expr) -> Expr:
    return x * x.apply("exp").apply("log1p").apply("tanh")


@pointwise("log_sigmoid.default")
def log_sigmoid(x: Expr) -> Expr:
    return x.minimum(0) - (-x.apply("abs")).apply("exp").apply("log1p")


@pointwise("hardshrink.default")
def hardshrink(x: Expr, limit: float = 0.5) -> Expr:
    inside = x.compare("ge", -limit).logic("and", x.compare("le", limit))
    return inside.select(0, x)


@pointwise("softshrink.default")
def softshrink(x: Expr, limit: float = 0.5) -> Expr:
    below = x.compare("lt", -limit).select(x + limit, x * 0)
    return x.compare("gt", limit).select(x - limit, below)


@pointwise("dropout.default")
def dropout(x: Expr, p: float, train: bool) -> Expr:
    """Only in evaluation mode, where it is the identity; `lower` refuses the other."""
    return x
