"""Reductions along rows: softmax, norms, sums, in registers and in the long form, any row length."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from stitch_tui.agents.builtin import emit
from stitch_tui.agents.builtin.ir import Kind
from stitch_tui.agents.builtin.lower import lower
from stitch_tui.agents.builtin.row_walks import RowProgram
from stitch_tui.tools.emulator import Emulator, Mode
from tests.agents.builtin.support import check, traced
from tests.agents.builtin.test_operators import Many

Tensor = torch.Tensor


def rows(*shapes: tuple[int, ...]) -> list[list[Tensor]]:
    return [[torch.randn(shape)] for shape in shapes]


def written_out_rms_norm(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def written_out_layer_norm(x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5)


LAST_AXIS: list[Callable[[Tensor], Tensor]] = [
    lambda x: F.softmax(x, -1),
    lambda x: F.log_softmax(x, -1),
    written_out_rms_norm,
    written_out_layer_norm,
    lambda x: F.softmax(F.gelu(x), -1) * 2 + x,
    lambda x: x.sum(-1),
    lambda x: x.mean(-1, keepdim=True),
    lambda x: x.amax(-1).exp(),
    lambda x: x.amin(-1, keepdim=True),
    lambda x: torch.logsumexp(x, -1),
    lambda x: x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min(1e-12),
    lambda x: x - x.mean(-1).unsqueeze(-1),
    lambda x: (x * x).sum(-1, keepdim=True) + 1,
]


@pytest.mark.slow
def test_rows_of_every_length_from_one_element_to_more_than_registers_hold(
    emulator: Emulator, tmp_path: Path
) -> None:
    case = traced(Many(LAST_AXIS), torch.randn(4, 64))
    lengths = rows((3, 1), (1, 7), (5, 128), (2, 1201), (1, 4000), (0, 5))
    subtask = check(emulator, tmp_path, case, lengths, tunes=["warp-per-row"], mode=Mode.FAST)
    assert subtask.kind is Kind.ROWS


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("length", [100, 4000, 20000])
def test_every_strategy_for_every_length(emulator: Emulator, tmp_path: Path, length: int) -> None:
    torch.manual_seed(length)  # the sum of one row may be near zero
    case = traced(Many(LAST_AXIS), torch.randn(2, length))
    check(emulator, tmp_path, case, rows((3, 37), (2, 4999), (1, 16411)), mode=Mode.FAST)


def test_rows_are_free_of_races_and_stray_accesses(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(Many(LAST_AXIS[:4]), torch.randn(4, 64))
    check(emulator, tmp_path, case, rows((3, 128), (2, 1031)), tunes=["small-block-per-row"])


def test_variance_and_deviation_need_two_elements_or_are_nan(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(
        Many([lambda x: x.std(-1), lambda x: x.var(-1), lambda x: x.var(-1, unbiased=False)]),
        torch.randn(2, 9),
    )
    check(emulator, tmp_path, case, rows((3, 17), (2, 1)), tunes=["warp-per-row"])


@pytest.mark.slow
@pytest.mark.parametrize("length", [5, 17000])
def test_infinities_and_nan_in_a_row_do_what_they_do_in_pytorch(
    emulator: Emulator, tmp_path: Path, length: int
) -> None:
    functions = [
        lambda x: F.softmax(x, -1),
        lambda x: F.log_softmax(x, -1),
        lambda x: torch.logsumexp(x, -1),
        lambda x: x.amax(-1),
        lambda x: x.sum(-1),
    ]
    odd = torch.randn(7, length)
    odd[0] = -torch.inf
    odd[1, 2], odd[2, 0], odd[3, 4] = torch.inf, -torch.inf, torch.nan
    odd[4, : length // 2], odd[5, 1:] = -torch.inf, -torch.inf
    tunes = ["warp-per-row", "split-rows"]
    case = traced(Many(functions), torch.randn(7, length))
    check(emulator, tmp_path, case, [[odd]], tunes=tunes, mode=Mode.FAST)


def test_a_large_mean_does_not_spoil_the_variance(emulator: Emulator, tmp_path: Path) -> None:
    check(emulator, tmp_path, traced(torch.nn.LayerNorm(33), torch.randn(3, 33)), [
        [torch.randn(4, 33) + 1e4, torch.ones(33), torch.zeros(33)]
    ], tunes=["warp-per-row"])  # fmt: skip


@pytest.mark.slow
def test_nor_in_one_pass_over_planes(emulator: Emulator, tmp_path: Path) -> None:
    norm = Many([lambda x: F.batch_norm(x, None, None, training=True)])
    case = traced(norm, torch.randn(200, 3, 12, 20))  # rows too long for registers
    images = [[torch.randn(n, 3, *size) + 1e3] for n, size in ((9, (6, 10)), (40, (8, 16)), (2, (5, 7)))]
    check(emulator, tmp_path, case, images, tunes=["split-rows"], mode=Mode.FAST)


@pytest.mark.parametrize(
    ("function", "walks"),
    [
        (lambda x: F.softmax(x, -1) * 2, 2),
        (lambda x: F.log_softmax(x, -1), 2),
        (lambda x: F.layer_norm(x, x.shape[-1:]), 2),
        (lambda x: x.var(-1), 2),  # of which the last only stores
        (lambda x: F.softmax(F.layer_norm(x, x.shape[-1:]), -1), 3),
        (lambda x: (x - x.amax(-1, keepdim=True)).sum(-1), 3),
    ],
)
def test_a_row_that_registers_do_not_hold_is_read_as_seldom_as_can_be(
    function: Callable[[Tensor], Tensor], walks: int
) -> None:
    case = traced(Many([function]), torch.randn(2, 9))
    subtask = lower(case.graph, case.everything())
    border = emit.border(case.graph, subtask)
    assert len(RowProgram(case.graph, subtask, border, keep=False).walks) == walks


@pytest.mark.parametrize("axis", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_an_axis_that_is_not_the_last(emulator: Emulator, tmp_path: Path, axis: int) -> None:
    functions: list[Callable[[Tensor], Tensor]] = [
        lambda x: F.softmax(x, axis),
        lambda x: x.sum(axis),
        lambda x: x - x.mean(axis, keepdim=True),
    ]
    case = traced(Many(functions), torch.randn(3, 4, 5))
    check(emulator, tmp_path, case, rows((3, 4, 5), (7, 3, 1), (2, 37, 3)), tunes=["tall-columns"])


def test_a_norm_over_several_dimensions_is_one_long_row(emulator: Emulator, tmp_path: Path) -> None:
    module = torch.nn.LayerNorm((3, 5))
    case = traced(module, torch.randn(4, 3, 5))
    check(
        emulator,
        tmp_path,
        case,
        [[torch.randn(7, 3, 5), torch.randn(3, 5), torch.randn(3, 5)]],
        tunes=["block-per-row"],
    )


SLOW = (torch.float32, torch.bfloat16)


class Residual(torch.nn.Module):
    """The sum is used again after the norm: it leaves the kernel too."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.RMSNorm(24)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        total = x + y
        return F.silu(self.norm(total)), total


@pytest.mark.parametrize("dtype", [torch.float16, *(pytest.param(d, marks=pytest.mark.slow) for d in SLOW)])
def test_producers_and_consumers_join_the_row(emulator: Emulator, tmp_path: Path, dtype: torch.dtype) -> None:
    x, y = torch.randn(2, 3, 24).to(dtype), torch.randn(2, 3, 24).to(dtype)
    case = traced(Residual().to(dtype), x, y)
    check(emulator, tmp_path, case, [case.values_at(case.everything())], tunes=["warp-per-row"])


def test_strided_and_broadcast_inputs(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(Many([lambda x, y: F.softmax(x + y, -1)]), torch.randn(4, 3, 6), torch.randn(3, 1))
    transposed = torch.randn(6, 3, 4).permute(2, 1, 0)
    check(emulator, tmp_path, case, [[transposed, torch.randn(3, 1)]], tunes=["warp-per-row"])
