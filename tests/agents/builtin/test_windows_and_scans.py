"""Pooling and running sums against PyTorch, in every direction and form."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stitch_tui.agents.builtin.ir import Kind
from stitch_tui.agents.builtin.planner import plan
from stitch_tui.tools.emulator import Emulator, Mode
from tests.agents.builtin.support import check, traced
from tests.agents.builtin.test_operators import Many
from tests.agents.builtin.test_pointwise import CAREFUL

Tensor = torch.Tensor
MAXIMA = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
MEANS = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def odd(*shape: int) -> Tensor:
    """With values that a window must not lose."""
    x = torch.randn(shape)
    x.view(-1)[3::17] = torch.nan
    x.view(-1)[5::11] = -torch.inf
    return x


def run_pool(
    emulator: Emulator, folder: Path, function: Callable[[Tensor], Tensor], *inputs: Tensor, tune: str
) -> None:
    case = traced(Many([lambda x: function(x) * 2 + 1]), inputs[0])
    subtask = check(emulator, folder, case, [[x] for x in inputs], tunes=[tune], mode=Mode.FAST)
    assert subtask.kind is Kind.POOL


@st.composite
def windows(draw: st.DrawFn) -> tuple[int, Callable[[Tensor], Tensor]]:
    dims, size = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    step, padding = draw(st.integers(1, 3)), draw(st.integers(0, size // 2))
    ceil, counted, dilation = draw(st.booleans()), draw(st.booleans()), draw(st.integers(1, 2))
    if draw(st.booleans()):
        return dims, lambda x: MAXIMA[dims](x, size, step, padding, dilation, ceil_mode=ceil)
    return dims, lambda x: MEANS[dims](x, size, step, padding, ceil_mode=ceil, count_include_pad=counted)


def run_windows(
    emulator: Emulator, folder: Path, window: tuple[int, Callable[[Tensor], Tensor]], side: int
) -> None:
    dims, function = window
    shape = [2, 3, *range(side, side + dims)]
    with torch.no_grad():
        try:
            function(torch.zeros(shape))
        except RuntimeError:
            assume(False)
    run_pool(emulator, folder, function, torch.randn(shape), odd(*shape), tune="window-per-thread")


@settings(CAREFUL, max_examples=3)
@given(windows(), st.integers(5, 11))
def test_windows_of_any_form_are_those_of_pytorch(
    emulator: Emulator, tmp_path: Path, window: tuple[int, Callable[[Tensor], Tensor]], side: int
) -> None:
    run_windows(emulator, tmp_path, window, side)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@settings(CAREFUL, max_examples=40)
@given(windows(), st.integers(5, 11))
def test_many_windows_are_those_of_pytorch(
    emulator: Emulator, tmp_path: Path, window: tuple[int, Callable[[Tensor], Tensor]], side: int
) -> None:
    run_windows(emulator, tmp_path, window, side)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.adaptive_avg_pool2d(x, (4, 5)),
        pytest.param(lambda x: F.adaptive_max_pool2d(x, (4, 5)), marks=pytest.mark.slow),
        pytest.param(lambda x: F.avg_pool2d(x, 2, divisor_override=3), marks=pytest.mark.slow),
        pytest.param(lambda x: F.max_pool2d(x.transpose(2, 3), 2), marks=pytest.mark.slow),
    ],
)
def test_windows_that_cover_the_input_may_share_their_ends(
    emulator: Emulator, tmp_path: Path, function: Callable[[Tensor], Tensor]
) -> None:
    case = traced(Many([function]), torch.randn(2, 3, 9, 11))
    (proposal,) = plan(case.graph).proposals
    inputs = case.values_at(proposal.region)
    check(emulator, tmp_path, case, [inputs], region=proposal.region, tunes=["small-blocks"])


def test_a_mean_over_all_positions_is_a_reduction_with_its_neighbours() -> None:
    case = traced(
        Many([lambda x: F.adaptive_avg_pool2d(F.relu(x), 1).flatten(1).sigmoid()]), torch.randn(2, 3, 9, 11)
    )
    (proposal,) = plan(case.graph).proposals
    assert proposal.title == "relu+adaptive_avg_pool2d+sigmoid"


# Scans

ALONG: list[Callable[[Tensor, Tensor], Tensor]] = [
    lambda x, m: (x * m).cumsum(-1) * 2,
    lambda x, m: m.cumsum(-1),
    lambda x, m: (1 + x * 0.01).cumprod(-1) + x,
]
SHAPES = [(2, 1, 2100), (2, 3, 37), (2, 3, 1), (2, 3, 0), (3, 5, 64)]


def masked(*shape: int) -> list[Tensor]:
    return [torch.randn(shape), torch.rand(shape) > 0.5]


@pytest.mark.parametrize("tune", ["warp-per-row", pytest.param("block-per-row", marks=pytest.mark.slow)])
def test_running_sums_along_memory(emulator: Emulator, tmp_path: Path, tune: str) -> None:
    case = traced(Many(ALONG), *masked(3, 5, 64))
    subtask = check(emulator, tmp_path, case, [masked(*s) for s in SHAPES], tunes=[tune], mode=Mode.FAST)
    assert subtask.kind is Kind.SCAN


@pytest.mark.parametrize(
    "tune", ["parts-of-columns", pytest.param("column-per-thread", marks=pytest.mark.slow)]
)
def test_running_sums_across_memory_and_backwards(emulator: Emulator, tmp_path: Path, tune: str) -> None:
    case = traced(Many([lambda x: x.exp().flip(1).cumsum(1).flip(1) + x]), torch.randn(3, 5, 64))
    cases = [[torch.randn(s)] for s in ((3, 5, 64), (2, 75, 35), (2, 1, 3), (0, 4, 2))]
    check(emulator, tmp_path, case, cases, tunes=[tune], mode=Mode.FAST)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_scans_are_free_of_races_in_every_strategy(emulator: Emulator, tmp_path: Path) -> None:
    along = traced(Many(ALONG[:2]), *masked(3, 5, 64))
    check(emulator, tmp_path, along, [masked(3, 5, 64), masked(2, 1, 2100)])
    across = traced(Many([lambda x: x.flip(1).cumsum(1).flip(1)]), torch.randn(3, 20, 33))
    check(emulator, tmp_path, across, [[torch.randn(3, 20, 33)]])


def test_scans_take_their_neighbours_but_not_other_directions() -> None:
    def titles(function: Callable[[Tensor], Tensor]) -> list[str]:
        graph = traced(Many([function]), torch.randn(4, 5, 6)).graph
        return sorted(p.title for p in plan(graph).proposals)

    assert titles(lambda x: (x * 2).cumsum(1).exp()) == ["mul+cumsum+exp"]
    assert titles(lambda x: x.flip(1).cumsum(1).flip(1)) == ["flip+cumsum+flip"]
    assert titles(lambda x: x.cumsum(1).cumsum(2)) == ["cumsum", "cumsum"]
