"""Losses and other composite operators: in the graph they are their parts, which have templates."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from stitch_tui.agents.builtin.planner import plan
from stitch_tui.tools.emulator import Emulator
from stitch_tui.tools.graph import region_of
from tests.agents.builtin.support import check, traced

Tensor = torch.Tensor


class Applied(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *operands: Tensor) -> Tensor:
        return self.function(*operands)


_X, _Y, _Z = torch.randn(3, 4, 5)
_CLASSES = torch.tensor([1, 0, 4, 2])
_WITH_IGNORED = torch.tensor([[3, -100, 0], [-100, 1, 2]])
LOSSES: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "cross entropy": (F.cross_entropy, (_X, _CLASSES)),
    "cross entropy, weighted": (lambda x, y, w: F.cross_entropy(x, y, w), (_X, _CLASSES, torch.rand(5))),
    "cross entropy of pixels": (F.cross_entropy, (torch.randn(2, 5, 3), _WITH_IGNORED)),
    "cross entropy, each": (partial(F.cross_entropy, reduction="none"), (_X, _CLASSES)),
    "cross entropy, sum": (partial(F.cross_entropy, reduction="sum"), (_X, _CLASSES)),
    "smooth l1": (F.smooth_l1_loss, (_X, _Y)),
    "huber": (F.huber_loss, (_X, _Y)),
    "divergence": (partial(F.kl_div, reduction="batchmean"), (_X, _Y.softmax(1))),
    "triplet margin": (F.triplet_margin_loss, (_X, _Y, _Z)),
    "squares": (F.mse_loss, (_X, _Y)),
    "logistic": (F.binary_cross_entropy_with_logits, (_X, _Y.sigmoid())),
    "products over named dimensions": (partial(torch.einsum, "ij,kj->ik"), (_X, _Y)),
}
QUICK = ("cross entropy, weighted", "triplet margin", "logistic", "products over named dimensions")


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in LOSSES]
)
def test_a_composite_operator_is_covered_by_its_parts(name: str) -> None:
    function, operands = LOSSES[name]
    case = traced(Applied(function), *operands)
    whole = case.everything()
    (found,) = case.truth(whole, [case.values[v] for v in whole.inputs], widen=False)
    torch.testing.assert_close(found, function(*operands))
    assert plan(case.graph).coverage == pytest.approx(1)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(rows=st.sampled_from([1, 2, 7]), classes=st.sampled_from([1, 2, 13]), seed=st.integers(0, 99))
def test_a_loss_of_any_shape_is_its_definition(rows: int, classes: int, seed: int) -> None:
    torch.manual_seed(seed)
    x, target = torch.randn(rows, classes), torch.randint(0, classes, (rows,))
    case = traced(Applied(F.cross_entropy), x, target)
    (found,) = case.truth(case.everything(), [x, target])
    torch.testing.assert_close(found, F.cross_entropy(x.double(), target))


def test_the_kernels_of_a_cross_entropy_are_right(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(Applied(F.cross_entropy), _X, _CLASSES)
    for proposal in plan(case.graph).proposals:
        region = region_of(case.graph, proposal.region.nodes)
        check(emulator, tmp_path, case, [case.values_at(region)], region=region, tunes=["vector", "short"])


@pytest.mark.slow
def test_a_reduction_of_extents_of_one_gives_the_operands_shape(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(Applied(lambda x: x.mean(1, keepdim=True).logsumexp(1, keepdim=True)), torch.randn(3, 1))
    (proposal,) = plan(case.graph).proposals
    check(emulator, tmp_path, case, [[torch.randn(5, 1)]], region=proposal.region)


def test_a_copy_of_a_result_is_made_by_the_kernel_that_computes_it() -> None:
    case = traced(Applied(lambda x, w: F.linear(x, w).clone()), _X, _Y)
    (proposal,) = plan(case.graph).proposals
    assert [case.graph.node[n].op for n in proposal.region.nodes][-1] == "aten.clone.default"
