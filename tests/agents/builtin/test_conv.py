"""Convolutions with epilogues: strides, padding, dilation, groups, transposes, one to three dimensions."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from stitch_tui.agents.builtin import coder
from stitch_tui.agents.builtin.ir import Kind
from stitch_tui.agents.builtin.lower import lower
from stitch_tui.agents.builtin.planner import plan
from stitch_tui.tools.emulator import Emulator, Mode
from tests.agents.builtin.support import Call, check, run_source, traced
from tests.agents.builtin.test_operators import Many

Tensor = torch.Tensor
FORMS = {
    "plain": (lambda x, w, b: F.conv2d(x, w, b), (2, 3, 7, 9), (5, 3, 3, 3)),
    "strided, padded, dilated": (
        lambda x, w, b: F.conv2d(x, w, b, (2, 1), (2, 1), (1, 2)), (2, 3, 7, 9), (17, 3, 3, 2),
    ),
    "pointwise": (lambda x, w, b: F.conv2d(x, w, b), (2, 33, 5, 5), (19, 33, 1, 1)),
    "depthwise": (lambda x, w, b: F.conv2d(x, w, b, 1, 1, 1, 6), (2, 6, 5, 7), (6, 1, 3, 3)),
    "groups": (lambda x, w, b: F.conv2d(x, w, b, 2, 1, 1, 2), (1, 6, 9, 7), (20, 3, 3, 3)),
    "same": (lambda x, w, b: F.conv2d(x, w, b, 1, "same"), (2, 3, 6, 5), (8, 3, 4, 3)),
    "one dimension": (lambda x, w, b: F.conv1d(x, w, b, 2, 1), (3, 4, 19), (9, 4, 5)),
    "without a batch": (lambda x, w, b: F.conv2d(x, w, b, 1, 1), (3, 8, 6), (12, 3, 3, 3)),
    "three dimensions": (lambda x, w, b: F.conv3d(x, w, b, 1, (1, 0, 1)), (2, 3, 4, 5, 6), (8, 3, 2, 3, 3)),
    "transposed": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, (2, 3), (1, 0), (1, 0), 1, (1, 2)),
        (2, 3, 4, 5), (3, 9, 3, 2),
    ),
    "transposed in groups": (
        lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 0, 2), (2, 6, 7), (6, 4, 3),
    ),
}  # fmt: skip
QUICK = ("strided, padded, dilated",)


@pytest.mark.parametrize(
    "form", [f if f in QUICK else pytest.param(f, marks=pytest.mark.slow) for f in FORMS]
)
def test_convolutions_of_every_form(emulator: Emulator, tmp_path: Path, form: str) -> None:
    function, x, w = FORMS[form]
    out = function(torch.randn(x), torch.randn(w), None)
    bias = torch.randn(out.shape[-(len(w) - 1)])
    case = traced(Many([function]), torch.randn(x), torch.randn(w), bias)
    subtask = check(emulator, tmp_path, case, [[torch.randn(x), torch.randn(w), bias]])
    assert subtask.kind is Kind.CONV


class Block(torch.nn.Module):
    """Convolution, bias, activation, residual."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return F.silu(self.conv(x) * 0.5) + x


EXTENTS = [(1, 1, 1, 1), (2, 24, 5, 7), (3, 37, 1, 13), (0, 24, 4, 4), (2, 4, 16, 16), (5, 2, 1, 1)]


def test_bias_activation_and_residual_join_for_any_extents(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(Block(24), torch.randn(2, 24, 5, 7))
    (proposal,) = plan(case.graph).proposals
    assert proposal.title == "conv2d+mul+silu+add"
    cases = [
        [torch.randn(extents), torch.randn(extents[1], extents[1], 3, 3), torch.randn(extents[1])]
        for extents in EXTENTS
    ]
    check(emulator, tmp_path, case, cases, tunes=["tile-64x64x16"], mode=Mode.FAST)


@pytest.mark.slow
def test_every_tile_is_free_of_races_and_stray_accesses(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(Block(24), torch.randn(2, 24, 5, 7))
    check(emulator, tmp_path, case, [case.values_at(case.everything())])


@pytest.mark.parametrize("dtype", [torch.float16, pytest.param(torch.bfloat16, marks=pytest.mark.slow)])
def test_narrow_convolutions_accumulate_in_f32(
    emulator: Emulator, tmp_path: Path, dtype: torch.dtype
) -> None:
    case = traced(Block(20).to(dtype), torch.randn(1, 20, 6, 5).to(dtype))
    check(emulator, tmp_path, case, [case.values_at(case.everything())], tunes=["tile-32x32x32"])


def test_a_kernel_of_another_size_is_refused(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(Block(4), torch.randn(1, 4, 5, 5))
    subtask = lower(case.graph, case.everything())
    source = coder.emit_source(case.graph, subtask, coder.strategies(subtask)[0])
    x = torch.randn(1, 4, 5, 5)
    wrong = [x, torch.randn(4, 4, 5, 5), torch.randn(4)]
    (outcome,) = run_source(emulator, tmp_path, source, [Call(wrong, [torch.empty_like(x)])])
    assert outcome.rc == 2
