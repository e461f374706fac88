"""Reductions over any dimensions, of any type, in one kernel and in parts; places of extrema; norms."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from stitch_tui.agents.builtin.coder import BuiltinCoder
from stitch_tui.agents.builtin.ir import Kind
from stitch_tui.agents.builtin.planner import plan
from stitch_tui.tools.emulator import Emulator, Mode
from tests.agents.builtin.support import check, traced
from tests.agents.builtin.test_operators import Many
from tests.agents.builtin.test_pointwise import CAREFUL

Tensor = torch.Tensor
Function = Callable[..., Tensor]

EVERYTHING: list[Function] = [
    lambda x: x.sum(),
    lambda x: x.mean(),
    lambda x: x.max(),
    lambda x: x.min() * 2,
    lambda x: x.prod(),
    lambda x: x.var(),
    lambda x: x.std(unbiased=False),
    lambda x: x.argmax(),
    lambda x: x.argmin(),
    lambda x: x.norm(),
    lambda x: torch.linalg.vector_norm(x, ord=3),
    lambda x: torch.linalg.vector_norm(x, ord=float("inf")),
    lambda x: torch.linalg.vector_norm(x, ord=0),
    lambda x: (x > 2).any(),
    lambda x: (x < 9).all(),
    lambda x: (x > 0).sum(),
    lambda x: torch.count_nonzero(x),
    lambda x: (x * 9).long().sum(),
    lambda x: (x * 9).int().max(),
    lambda x: x.nansum(),
    lambda x: x.nanmean(),
]
QUICK = EVERYTHING[::3]
"""A sum, an extremum, its place, a deviation, a norm, a truth value and a count among them."""


def over(dims: tuple[int, ...], keepdim: bool) -> list[Function]:
    """Reductions over the same dimensions, with work before and after."""
    return [
        lambda x: F.gelu(x * 2).sum(dims, keepdim=keepdim) + 1,
        lambda x: torch.var_mean(x, dims, keepdim=keepdim)[0],
        lambda x: torch.var_mean(x, dims, keepdim=keepdim)[1],
        lambda x: torch.logsumexp(x, dims, keepdim=keepdim).exp(),
        lambda x: x - x.mean(dims, keepdim=True),
        lambda x: x.amin(dims, keepdim=keepdim),
        lambda x: (x > 0).any(dims, keepdim=keepdim),
        lambda x: torch.linalg.vector_norm(x, dim=dims, keepdim=keepdim),
    ]


@pytest.mark.parametrize(
    "functions", [QUICK, pytest.param(EVERYTHING, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_all_elements_are_reduced_to_one_in_parts_that_merge_in_a_fixed_order(
    emulator: Emulator, tmp_path: Path, functions: list[Function]
) -> None:
    case = traced(Many(functions), torch.randn(3, 4, 64))
    shapes = [(3, 4, 64), (1, 1, 1), (7, 11, 100), (2, 5, 7)]
    check(emulator, tmp_path, case, [[torch.randn(s)] for s in shapes], tunes=["split-rows"], mode=Mode.FAST)


DIMS = [d for n in (1, 2, 3) for d in combinations(range(3), n)]
EXTENTS = st.sampled_from([1, 2, 3, 5, 8, 13, 32])
SHAPES = st.lists(st.tuples(EXTENTS, EXTENTS, EXTENTS), min_size=2, max_size=4)


def run_over(
    emulator: Emulator, folder: Path, dims: tuple[int, ...], keepdim: bool, shapes: list[tuple[int, ...]]
) -> None:
    case = traced(Many(over(dims, keepdim)), torch.randn(3, 4, 8))
    empty = [torch.randn(0 if 0 not in dims else 2, 3, 0 if 2 not in dims else 4)]
    cases = [[torch.randn(s)] for s in shapes]
    names = {True: ["warp-per-row", "split-rows"], False: ["columns", "split-columns"]}
    candidate = check(emulator, folder, case, [*cases, empty], tunes=names[2 in dims][:1], mode=Mode.FAST)
    assert candidate.kind is Kind.ROWS


@settings(CAREFUL, max_examples=2)
@given(st.sampled_from(DIMS), st.booleans(), SHAPES)
def test_any_dimensions_are_reduced(
    emulator: Emulator, tmp_path: Path, dims: tuple[int, ...], keepdim: bool, shapes: list[tuple[int, ...]]
) -> None:
    run_over(emulator, tmp_path, dims, keepdim, shapes)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("dims", DIMS)
@settings(CAREFUL, max_examples=3)
@given(keepdim=st.booleans(), shapes=SHAPES)
def test_many_shapes_are_reduced_over_any_dimensions(
    emulator: Emulator, tmp_path: Path, dims: tuple[int, ...], keepdim: bool, shapes: list[tuple[int, ...]]
) -> None:
    run_over(emulator, tmp_path, dims, keepdim, shapes)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_every_strategy_over_an_axis_in_check_mode(emulator: Emulator, tmp_path: Path, axis: int) -> None:
    case = traced(Many(over((axis,), False)), torch.randn(3, 40, 8))
    shapes = [(3, 40, 8), (5, 37, 3), (1, 70, 4000), (1, 4000, 33)]
    check(emulator, tmp_path, case, [[torch.randn(s)] for s in shapes])


@pytest.mark.parametrize(
    "axis", [1, pytest.param(0, marks=pytest.mark.slow), pytest.param(-1, marks=pytest.mark.slow)]
)
def test_the_first_of_equal_extrema_and_the_first_nan_are_found(
    emulator: Emulator, tmp_path: Path, axis: int
) -> None:
    functions: list[Function] = [
        lambda x: x.max(axis)[0],
        lambda x: x.max(axis)[1],
        lambda x: x.min(axis, keepdim=True)[1],
        lambda x: x.argmax(axis),
        lambda x: torch.aminmax(x, dim=axis)[0],
        lambda x: x.argmin(axis, keepdim=True) + 1,
        lambda x: (x * 3).long().argmax(axis),
        lambda x: x.isnan().any(axis),
    ]
    x = torch.randint(-2, 3, (3, 20, 35)).float()
    x[0, 7, :] = torch.nan
    x[1, 3, :] = x[1, 9, :] = torch.inf
    x[2] = -torch.inf
    name = "warp-per-row" if axis == -1 else "columns"
    check(emulator, tmp_path, traced(Many(functions), torch.randn(3, 20, 35)), [[x]], tunes=[name])


class Norms(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.group = torch.nn.GroupNorm(2, 6)
        self.instance = torch.nn.InstanceNorm2d(6, affine=True)
        self.batch = torch.nn.BatchNorm2d(6)
        self.evaluated = torch.nn.BatchNorm2d(6).eval()
        for p in self.parameters():
            torch.nn.init.normal_(p)


class Named(torch.nn.Module):
    """One of the norms between a producer and a consumer."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.norms, self.name = Norms(), name

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.silu(getattr(self.norms, self.name)(x + y)) * x


@pytest.mark.parametrize("tune", ["warp-per-row", pytest.param("split-rows", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["group", "instance", "batch"])
def test_a_norm_of_images_is_one_kernel_with_its_neighbours(
    emulator: Emulator, tmp_path: Path, name: str, tune: str
) -> None:
    case = traced(Named(name), torch.randn(3, 6, 4, 5), torch.randn(3, 6, 4, 5))
    proposal, *rest = plan(case.graph).proposals
    assert [p.title for p in rest] == (["add"] if name == "batch" else [])
    assert proposal.title == f"add+{name}_norm+silu+mul"
    region = proposal.region
    check(emulator, tmp_path, case, [case.values_at(region)], region=region, tunes=[tune], mode=Mode.FAST)


def test_an_evaluated_batch_norm_is_pointwise(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(Named("evaluated"), torch.randn(3, 6, 4, 5), torch.randn(3, 6, 4, 5))
    region = case.everything()
    subtask = check(emulator, tmp_path, case, [case.values_at(region)], tunes=["vector"], mode=Mode.FAST)
    assert subtask.kind is Kind.POINTWISE


@pytest.mark.parametrize("dtype", [torch.bfloat16, pytest.param(torch.float16, marks=pytest.mark.slow)])
def test_narrow_types_are_reduced_in_f32(emulator: Emulator, tmp_path: Path, dtype: torch.dtype) -> None:
    functions: list[Function] = [lambda x: x.sum((0, 2)), lambda x: F.softmax(x, 2) - x.mean(2, keepdim=True)]
    for function, tune in zip(functions, ("warp-per-row", "small-block-per-row"), strict=True):
        case = traced(Many([function]), torch.randn(3, 5, 64).to(dtype))
        cases = [[torch.randn(s).to(dtype)] for s in ((3, 5, 64), (2, 3, 7))]
        check(emulator, tmp_path, case, cases, tunes=[tune], mode=Mode.FAST)


def test_few_long_rows_are_cut_and_rows_across_memory_are_walked_side_by_side() -> None:
    def first(function: Function, *shape: int) -> str:
        case = traced(Many([function]), torch.randn(1).expand(shape))
        attempt = BuiltinCoder().attempt(case.graph, case.everything(), 0)
        assert attempt
        return attempt.strategy

    assert first(lambda x: x.sum(), 64, 4096) == "split-rows"
    assert first(lambda x: F.softmax(x, -1), 4096, 64) == "warp-per-row"
    assert first(lambda x: F.softmax(x, 1), 64, 128, 64) == "columns"
    assert first(lambda x: x.sum(0), 65536, 64) == "split-columns"


def test_a_chain_of_reductions_and_what_stands_between_them_is_cut_at_the_rows() -> None:
    case = traced(
        Many([lambda x: (F.relu(x).amax(2) * 2).sum(1, keepdim=True).exp()]), torch.randn(32, 16, 24)
    )
    titles = [p.title for p in plan(case.graph).proposals]
    assert sorted(titles) == ["relu+amax+mul", "sum+exp"]
    assert not plan(case.graph).leftovers
