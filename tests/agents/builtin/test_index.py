"""Kernels that move elements: every operator against PyTorch, alone and with pointwise neighbours."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from stitch_tui.agents.builtin.ir import Kind
from stitch_tui.agents.builtin.planner import plan
from stitch_tui.tools.emulator import Emulator, Mode
from tests.agents.builtin.support import check, traced
from tests.agents.builtin.test_operators import Many

Tensor = torch.Tensor
X = (2, 4, 6, 5)
ROWS = torch.tensor([[2, 0, 1], [1, 1, 3]])
PICKED = torch.tensor([1, 0, 1, 2])
FORMS: dict[str, tuple[Callable[..., Tensor], list[Tensor]]] = {
    "permute": (lambda x: x.permute(0, 2, 3, 1).contiguous(), [torch.randn(X)]),
    "transposed sum": (lambda x, y: x.transpose(1, 2) + y.permute(0, 2, 3, 1), [
        torch.randn(X), torch.randn(2, 5, 6, 4),
    ]),
    "flip": (lambda x: torch.flip(x, [1, -1]), [torch.randn(X)]),
    "roll": (lambda x: torch.roll(x, (1, -7), (0, 2)), [torch.randn(X)]),
    "pad": (lambda x: F.pad(x.relu(), (1, 2, -1, 3), value=0.5) * 2, [torch.randn(X)]),
    "pad by reflection": (lambda x: F.pad(x, (1, 2, 3, 0), mode="reflect"), [torch.randn(X)]),
    "pad by replication": (lambda x: F.pad(x, (1, 2, 3, 0), mode="replicate"), [torch.randn(X)]),
    "pad around": (lambda x: F.pad(x, (1, 2, 3, 0), mode="circular"), [torch.randn(X)]),
    "cat": (lambda x, y, z: torch.cat([x.relu(), y, z * 2], 1).tanh(), [
        torch.randn(X), torch.randn(2, 1, 6, 5), torch.randn(2, 3, 6, 5),
    ]),
    "cat in front of a transposed one": (lambda x, y: torch.cat([y, x.t()]), [
        torch.randn(3, 4), torch.randn(2, 3),
    ]),
    "stack": (lambda x, y: torch.stack([x, y.abs(), x * y], -2), [torch.randn(X), torch.randn(X)]),
    "slices": (lambda x: x[:, 1:3, ::2] * x[:, -2:, 1::2, -1:], [torch.randn(X)]),
    "gates": (lambda x: [t := x.chunk(3, -1), torch.sigmoid(t[0]) * torch.tanh(t[1]) + t[2]][1], [
        torch.randn(5, 9),
    ]),
    "index": (lambda x, i: x[:, i], [torch.randn(4, 5), torch.tensor([0, -1, 3])]),
    "two indices": (lambda x, i, j: x[i, j], [torch.randn(4, 5), PICKED[:, None], ROWS[0]]),
    "embedding": (lambda w, i, p: F.embedding(i, w) * 2 + p, [torch.randn(4, 7), ROWS, torch.randn(3, 7)]),
    "gather": (lambda x, i: torch.gather(x, 1, i), [torch.randn(3, 4), ROWS]),
    "index_select": (lambda x, i: torch.index_select(x, 1, i).relu(), [torch.randn(2, 3, 4), PICKED]),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), [torch.randn(2, 8, 3, 5)]),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), [torch.randn(2, 3, 4, 6)]),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), [torch.randn(X)]),
    "nearest to a size": (lambda x: F.interpolate(x, size=(7, 3)), [torch.randn(X)]),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [torch.randn(X)]),
    "bilinear aligned": (
        lambda x: F.interpolate(x, size=(3, 7), mode="bilinear", align_corners=True), [torch.randn(X)],
    ),
    "tril": (lambda x: torch.tril(x, 1) * 2, [torch.randn(2, 5, 4)]),
    "triu": (lambda x: torch.triu(x), [torch.randn(5, 4)]),
    "diag": (lambda x: torch.diag(x), [torch.randn(5)]),
    "repeat": (lambda x: x.repeat(2, 3, 1, 2), [torch.randn(2, 3, 2)]),
    "repeat_interleave": (lambda x: x.repeat_interleave(3, 1), [torch.randn(2, 3, 2)]),
    "integers": (lambda i: torch.cat([i, i.flip(0)]) + 1, [ROWS]),
}  # fmt: skip
QUICK = ("pad", "cat", "gates", "two indices")


@pytest.mark.parametrize(
    "form", [f if f in QUICK else pytest.param(f, marks=pytest.mark.slow) for f in FORMS]
)
def test_elements_are_moved_as_in_pytorch(emulator: Emulator, tmp_path: Path, form: str) -> None:
    function, inputs = FORMS[form]
    case = traced(Many([function]), *inputs)
    (proposal,) = plan(case.graph).proposals
    values = [case.values_at(proposal.region)]
    subtask = check(emulator, tmp_path, case, values, region=proposal.region, mode=Mode.FAST)
    assert subtask.kind is Kind.INDEX
    assert all(v not in case.graph.node for v in proposal.region.inputs), "views belong to the kernel"


def test_extents_come_from_the_call(emulator: Emulator, tmp_path: Path) -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        return F.pad(torch.cat([x, y.flip(1)], 1), (1, 0, 0, 2)).transpose(1, 2) * 2

    case = traced(Many([function]), torch.randn(2, 3, 4), torch.randn(2, 2, 4))
    shapes = [((3, 1, 7), (3, 5, 7)), ((1, 2, 1), (1, 3, 1)), ((2, 0, 3), (2, 1, 3)), ((0, 2, 3), (0, 4, 3))]
    cases = [[torch.randn(a), torch.randn(b)] for a, b in shapes]
    check(emulator, tmp_path, case, cases)


def test_neighbours_are_moved_together_where_they_can_be(emulator: Emulator, tmp_path: Path) -> None:
    def function(x: Tensor, bias: Tensor, y: Tensor) -> Tensor:
        return torch.cat([x + bias, y], 1).transpose(1, 2).relu()

    bias = torch.randn(2, 1, 1)
    case = traced(Many([function]), torch.randn(2, 2, 4, 8), bias, torch.randn(2, 3, 4, 8))
    extents = ((3, 2, 8), (1, 5, 7), (2, 3, 12), (1, 1, 40000))
    cases = [[torch.randn(n, 2, h, w), bias, torch.randn(n, 2, h, w)] for n, h, w in extents]
    apart = torch.randn(1, 2, 2, 9)[..., 1:]  # not where packs begin
    check(emulator, tmp_path, case, [*cases, [apart, bias, torch.randn(1, 2, 2, 8)]], tunes=["one-result"])


@pytest.mark.parametrize("dtype", [torch.float16, torch.int32, torch.bool])
def test_every_type_is_moved_exactly(emulator: Emulator, tmp_path: Path, dtype: torch.dtype) -> None:
    x = torch.randint(0, 2, (3, 5)).to(dtype)
    case = traced(Many([lambda x: torch.cat([x.t(), x.t()], 1)]), x)
    check(emulator, tmp_path, case, [[x]], tunes=["four-results"])


def test_a_concatenation_takes_its_producers_and_consumers() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        return torch.cat([x.relu(), torch.tanh(y)], 1) * 2

    (proposal,) = plan(traced(Many([function]), torch.randn(2, 3), torch.randn(2, 4)).graph).proposals
    assert proposal.title == "relu+tanh+cat+mul"


def test_what_is_read_more_than_once_is_not_computed_again() -> None:
    cut = plan(traced(Many([lambda x: torch.tanh(x).repeat(4, 1)]), torch.randn(2, 3)).graph)
    assert {p.title for p in cut.proposals} == {"tanh", "repeat"}
