"""The operator table against PyTorch, special values included; one kernel for many operators."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from stitch_tui.agents.builtin import operators
from stitch_tui.agents.builtin.planner import plan
from stitch_tui.tools.emulator import Emulator, Mode
from tests.agents.builtin.support import check, traced

Tensor = torch.Tensor


class Many(torch.nn.Module):
    """Several functions of the same operands, each an output."""

    def __init__(self, functions: Sequence[Callable[..., Tensor]]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, *operands: Tensor) -> list[Tensor]:
        return [f(*operands) for f in self.functions]


UNARY: list[Callable[..., Tensor]] = [
    F.relu,
    F.relu6,
    F.gelu,
    lambda x: F.gelu(x, approximate="tanh"),
    F.silu,
    torch.sigmoid,
    torch.tanh,
    F.leaky_relu,
    lambda x: F.leaky_relu(x, 0.2),
    F.elu,
    lambda x: F.elu(x, 0.7),
    lambda x: F.celu(x, 1.3),
    F.selu,
    F.softplus,
    lambda x: F.softplus(x, 2.0, 5.0),
    F.hardtanh,
    lambda x: F.hardtanh(x, -0.5, 0.25),
    F.hardsigmoid,
    F.hardswish,
    F.mish,
    F.logsigmoid,
    F.hardshrink,
    F.softshrink,
    F.softsign,
    F.tanhshrink,
    lambda x: F.threshold(x, 0.1, -7.0),
    torch.abs,
    torch.neg,
    torch.square,
    torch.sign,
    torch.floor,
    torch.ceil,
    torch.trunc,
    torch.round,
    torch.exp,
    torch.expm1,
    torch.sin,
    torch.cos,
    torch.atan,
    torch.asinh,
    torch.erf,
    torch.erfc,
    lambda x: x.clamp(-0.5, 0.5),
    lambda x: x.clamp(min=0.25),
    lambda x: x.clamp(max=0.25),
    lambda x: x.clamp(2.0, -2.0),
    lambda x: x**2,
    lambda x: x**3,
    lambda x: 2 - x,
    lambda x: torch.rsub(x, 1.5, alpha=2),
    lambda x: x / 3,
    lambda x: x + 1,
    lambda x: torch.isnan(x),
    lambda x: x > 0.5,
    lambda x: x == 0,
    lambda x: torch.logical_not(x),
    lambda x: torch.where(x > 0, x, -1.0),
    lambda x: torch.where(x > 0, 1.0, x),
    lambda x: torch.where(x > 0, 1.0, 0.5),
    lambda x: torch.where(x > 0, 2, 1) + 1,
    lambda x: x.masked_fill(x < 0, -math.inf),
    lambda x: x.half().float(),
    lambda x: x.bfloat16().float(),
    lambda x: (x > 0).float(),
    lambda x: (x > 0) + 1,
    lambda x: F.dropout(x, 0.5, training=False),
]

POSITIVE: list[Callable[..., Tensor]] = [
    torch.log,
    torch.log2,
    torch.log10,
    torch.log1p,
    torch.sqrt,
    torch.rsqrt,
    torch.reciprocal,
    torch.acosh,
    lambda x: x**0.5,
    lambda x: x**-0.5,
    lambda x: x**-1,
    lambda x: x**-2,
    lambda x: x**1.7,
    lambda x: torch.pow(x, 1),
]

UNIT: list[Callable[..., Tensor]] = [
    torch.asin,
    torch.acos,
    torch.atanh,
    torch.tan,
    torch.sinh,
    torch.cosh,
    torch.exp2,
]

BINARY: list[Callable[..., Tensor]] = [
    torch.add,
    lambda x, y: torch.add(x, y, alpha=0.5),
    lambda x, y: torch.sub(x, y, alpha=2),
    lambda x, y: torch.rsub(x, y),
    torch.mul,
    torch.div,
    torch.maximum,
    torch.minimum,
    lambda x, y: x < y,
    lambda x, y: x >= y,
    lambda x, y: x != y,
    lambda x, y: torch.logical_and(x, y),
    lambda x, y: torch.logical_xor(x, y),
    lambda x, y: torch.where(x < y, x, y),
    lambda x, y: torch.lerp(x, y, 0.3),
    lambda x, y: torch.addcmul(x, y, y, value=0.5),
    lambda x, y: torch.addcdiv(x, x, y, value=0.5),
    lambda x, y: torch.clamp(x, min=y),
    lambda x, y: torch.min(x, y),
    lambda x, y: torch.max(x, y),
    torch.multiply,
    torch.divide,
    torch.subtract,
    torch.xlogy,
]

INTEGER: list[Callable[..., Tensor]] = [
    lambda i, b: i + 3,
    lambda i, b: i * i,
    lambda i, b: 5 - i,
    lambda i, b: torch.abs(i),
    lambda i, b: i > 2,
    lambda i, b: i / 2,
    lambda i, b: i.float(),
    lambda i, b: torch.maximum(i, i * 2),
    lambda i, b: torch.where(b, i, 0),
    lambda i, b: i.masked_fill(b, -1),
    lambda i, b: torch.logical_or(b, i),
    lambda i, b: i * 1.5,
    lambda i, b: i.to(torch.uint8),
    lambda i, b: b * i,
    lambda i, b: b | True,
    lambda i, b: b & ~b,
    lambda i, b: i ^ 5,
    lambda i, b: torch.exp(i * 0.01),
]

SPECIAL = torch.tensor(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 3.0, -3.0, 6.0, 20.5, -20.5, 80.0, -80.0, 1e-8, -1e-8, 1e-30]
)
BEYOND = torch.tensor([math.nan, math.inf, -math.inf, 1.0])


def test_functions_of_one_operand_are_pytorchs_up_to_nan_and_infinity(
    emulator: Emulator, tmp_path: Path
) -> None:
    case = traced(Many(UNARY), torch.randn(7))
    check(
        emulator, tmp_path, case, [[torch.randn(37)], [SPECIAL], [BEYOND]], tunes=["vector"], mode=Mode.FAST
    )


@pytest.mark.slow
def test_functions_of_positive_and_of_unit_arguments(emulator: Emulator, tmp_path: Path) -> None:
    functions = [*(_first(f) for f in POSITIVE), *(_second(f) for f in UNIT)]
    case = traced(Many(functions), torch.rand(5) + 1, torch.rand(5) - 0.5)
    check(emulator, tmp_path, case, [[torch.rand(29) + 1, torch.rand(29) - 0.5]], tunes=["scalar"])


def _first(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda x, y: function(x)


def _second(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda x, y: function(y)


@pytest.mark.slow
def test_functions_of_two_operands(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(Many(BINARY), torch.randn(5), torch.randn(5))
    extremes = [[BEYOND, torch.ones(4)], [torch.ones(4), BEYOND]]
    check(emulator, tmp_path, case, [[torch.randn(31), torch.randn(31)], *extremes], tunes=["scalar"])


@pytest.mark.parametrize("dtype", [torch.int32, pytest.param(torch.int64, marks=pytest.mark.slow)])
def test_integers_and_booleans(emulator: Emulator, tmp_path: Path, dtype: torch.dtype) -> None:
    draw = torch.randint(-100, 100, (19,)).to(dtype)
    case = traced(Many(INTEGER), draw, draw > 0)
    check(emulator, tmp_path, case, [[draw, draw > 3]], tunes=["vector"])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float16, pytest.param(torch.bfloat16, marks=pytest.mark.slow)])
def test_narrow_floats_are_computed_in_f32(emulator: Emulator, tmp_path: Path, dtype: torch.dtype) -> None:
    functions = [*UNARY[:12], torch.exp, lambda x: x.float() * 2, lambda x: x.float().to(x.dtype)]
    case = traced(Many(functions), torch.randn(7).to(dtype))
    check(emulator, tmp_path, case, [[torch.randn(n).to(dtype)] for n in (16, 13)], tunes=["vector"])


def test_every_operator_of_the_table_exists_in_pytorch() -> None:
    for name in (
        *operators.POINTWISE,
        *operators.ROWS,
        *operators.RESHAPES,
        *operators.CASTS,
        *operators.IDENTITY,
    ):
        _, packet, overload = name.split(".")
        assert hasattr(getattr(torch.ops.aten, packet), overload), name


@pytest.mark.slow
def test_prelu_slopes_lie_along_the_second_dimension_or_are_one(emulator: Emulator, tmp_path: Path) -> None:
    module = torch.nn.PReLU(3)
    case = traced(module, torch.randn(5, 3))
    inputs = [torch.randn(7, 3), torch.tensor([0.1, 2.0, -3.0])]
    check(emulator, tmp_path, case, [inputs], tunes=["vector"])
    assert not plan(traced(module, torch.randn(2, 3, 3)).graph).proposals
    assert plan(traced(torch.nn.PReLU(), torch.randn(2, 3, 3)).graph).proposals
