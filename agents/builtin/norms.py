"""Layer, RMS, group, instance and batch norm."""

from stitch_tui.agents.builtin.reductions import count, mean, total
from stitch_tui.agents.builtin.scalar import Expr
from stitch_tui.agents.builtin.table import CHANNELS, pointwise, rows

CHANNELS["aten.group_norm.default"] = (2, 3)
CHANNELS["aten._native_batch_norm_legit_no_training.default"] = (1, 2, 3, 4)


def _moments(x: Expr) -> tuple[Expr, Expr, Expr]:
    """The values about their mean, the mean, and the biased variance, in two passes."""
    middle = mean(x)
    centred = x - middle
    return centred, middle, total(centred * centred) / count(x)


def _affine(y: Expr, weight: Expr | None, bias: Expr | None) -> Expr:
    scaled = y if weight is None else y * weight
    return scaled if bias is None else scaled + bias


@rows("layer_norm.default")
def layer_norm(
    x: Expr,
    shape: list[int],
    weight: Expr | None = None,
    bias: Expr | None = None,
    eps: float = 1e-5,
    cudnn: bool = False,
) -> Expr:
    centred, _, variance = _moments(x)
    return _affine(centred * (variance + eps).apply("rsqrt"), weight, bias)


@rows("rms_norm.default")
def rms_norm(x: Expr, shape: list[int], weight: Expr | None = None, eps: float | None = None) -> Expr:
    """`lower` fills in the dtype's epsilon where `eps` is None."""
    return _affine(x * (mean(x * x) + (eps or 0.0)).apply("rsqrt"), weight, None)


@rows("group_norm.default")
def group_norm(
    x: Expr,
    groups: int,
    weight: Expr | None = None,
    bias: Expr | None = None,
    eps: float = 1e-5,
    cudnn: bool = False,
) -> Expr:
    return layer_norm(x, [], weight, bias, eps)


@rows("instance_norm.default")
def instance_norm(
    x: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr | None,
    running_var: Expr | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn: bool = False,
) -> Expr:
    """`lower` refuses running statistics, which the exported graph does not update."""
    return layer_norm(x, [], weight, bias, eps)


@rows("_native_batch_norm_legit.no_stats")
def batch_norm(
    x: Expr, weight: Expr | None, bias: Expr | None, training: bool, momentum: float, eps: float
) -> tuple[Expr, Expr, Expr]:
    """The result, the mean and the reciprocal of the deviation."""
    centred, middle, variance = _moments(x)
    scale = (variance + eps).apply("rsqrt")
    return _affine(centred * scale, weight, bias), middle, scale


@rows("_native_batch_norm_legit_functional.default")
def batch_norm_with_statistics(
    x: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr,
    running_var: Expr,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Expr, ...]:
    """As `batch_norm`, and the new running statistics, whose variance is the unbiased one."""
    _, middle, variance = _moments(x)
    n = count(x)
    unbiased = variance * (n / (n - 1))
    return (
        *batch_norm(x, weight, bias, training, momentum, eps),
        middle * momentum + running_mean * (1 - momentum),
        unbiased * momentum + running_var * (1 - momentum),
    )


@pointwise("_native_batch_norm_legit_no_training.default")
def batch_norm_evaluated(
    x: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr,
    running_var: Expr,
    momentum: float,
    eps: float,
) -> tuple[Expr, ...]:
    """The other results, saved statistics, are empty."""
    scale = (running_var + eps).apply("rsqrt")
    if weight is not None:
        scale = scale * weight
    return (_affine((x - running_mean) * scale, None, bias),)
