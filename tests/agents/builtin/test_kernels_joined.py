"""Batch norms in kernels of another kind: behind a convolution, and among moves of elements."""

from pathlib import Path

import torch
from torch import nn

from stitch_tui.agents.builtin.ir import Kind
from stitch_tui.agents.builtin.lower import lower
from stitch_tui.agents.builtin.planner import plan
from stitch_tui.tools.emulator import Emulator
from tests.agents.builtin.support import check, traced

Tensor = torch.Tensor


def _evaluated(channels: int, dims: int = 2) -> nn.Module:
    norm = (nn.BatchNorm2d if dims == 2 else nn.BatchNorm1d)(channels).eval()
    for tensor in (norm.weight, norm.bias, norm.running_mean):
        nn.init.normal_(tensor)
    nn.init.uniform_(norm.running_var, 0.5, 2)
    return norm


class Convolved(nn.Module):
    """A convolution, a norm of what it gives, an activation."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3)
        self.norm = _evaluated(6)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x)).relu()


class Joined(nn.Module):
    """A concatenation of channels, a norm of them, an activation: a dense block's start."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = _evaluated(5)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.norm(torch.cat([x, y], 1)).relu()


class SingleImage(nn.Module):
    """A convolution of one image without a batch, whose result the norm takes for a batch of rows."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = _evaluated(5, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x))


def test_an_evaluated_batch_norm_joins_its_convolution(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(Convolved().eval(), torch.randn(2, 3, 7, 6))
    values = [case.values_at(case.everything())]
    subtask = check(emulator, tmp_path, case, values, tunes=["direct"])
    assert subtask.kind is Kind.CONV
    assert len(plan(case.graph).proposals) == 1


def test_an_evaluated_batch_norm_joins_a_concatenation(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(Joined().eval(), torch.randn(2, 2, 3, 4), torch.randn(2, 3, 3, 4))
    subtask = check(emulator, tmp_path, case, [case.values_at(case.everything())])
    assert subtask.kind is Kind.INDEX
    assert len(plan(case.graph).proposals) == 1


def test_a_norm_over_the_rows_of_a_single_image_stays_apart() -> None:
    case = traced(SingleImage().eval(), torch.randn(3, 5, 6))
    kinds = [lower(case.graph, p.region).kind for p in plan(case.graph).proposals]
    assert sorted(kinds) == [Kind.CONV, Kind.POINTWISE]
