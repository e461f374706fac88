"""Which parameters a kernel may have: legal on any device, right on the emulator, ordered for a race."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from stitch_tui.agents import commands, plan_edits
from stitch_tui.agents.builtin import coder
from stitch_tui.agents.builtin.ir import ConvRoot, GemmRoot, Subtask, Tune
from stitch_tui.agents.builtin.lower import lower
from stitch_tui.agents.builtin.roles import BuiltinCoder
from stitch_tui.agents.builtin.variants import is_legal, left_after, tile_cost, variants
from stitch_tui.agents.roles import CodeBrief
from stitch_tui.agents.state import Candidate, Iteration, Plan, Session
from stitch_tui.agents.state import Subtask as Planned
from stitch_tui.tools.emulator import Emulator
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.race import Race
from stitch_tui.tools.verdict import Samples
from tests.agents.builtin.support import Traced, check, traced

Tensor = torch.Tensor
TIME = Samples(median_us=1.0, low_us=1.0, high_us=1.0, count=9)


class Applied(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor], layer: nn.Module | None = None) -> None:
        super().__init__()
        self.function, self.layer = function, layer or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.layer(x))


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "product": (lambda: Applied(F.silu, nn.Linear(20, 36)), (33, 20)),
    "convolution": (lambda: Applied(F.relu, nn.Conv2d(3, 18, 3)), (2, 3, 9, 9)),
    "softmax": (lambda: Applied(lambda x: x.softmax(-1)), (5, 70)),
    "softmax across": (lambda: Applied(lambda x: x.softmax(1)), (3, 21, 5)),
    "running sum": (lambda: Applied(lambda x: x.cumsum(1)), (5, 70)),
    "running sum across": (lambda: Applied(lambda x: x.cumsum(0)), (70, 5)),
    "halves": (lambda: Applied(lambda x: F.gelu(x.half()) * 2), (9, 16)),
    "concatenation": (lambda: Applied(lambda x: torch.cat([x, x], 1)), (4, 9)),
    "pool": (lambda: Applied(lambda x: F.max_pool2d(x, 2)), (2, 3, 9, 9)),
}


@cache
def case(name: str) -> tuple[Traced, Tensor, Subtask]:
    make, shape = CASES[name]
    x = torch.randn(shape)
    found = traced(make(), x)
    return found, x, lower(found.graph, found.everything())


def variants_of(subtask: Subtask) -> list[Tune]:
    return variants(subtask, coder.strategies(subtask, "cuda"))


@pytest.mark.parametrize("name", CASES)
def test_a_kind_has_more_variants_than_strategies_all_legal_and_none_twice(name: str) -> None:
    traced_, _, subtask = case(name)
    strategies, found = coder.strategies(subtask, "cuda"), variants_of(subtask)
    assert len(found) > len(strategies)
    assert {tune.name for tune in strategies} <= {tune.name for tune in found}
    assert len({tune.name for tune in found}) == len(found)
    for tune in found:
        source = coder.emit_source(traced_.graph, subtask, tune)
        assert all(f"{word} = {size}" in source for word, size in tune.constants.items() if word != "GROUP")
    own = [tune for tune in found if tune.name not in ("cublas", "tensor-cores")]
    assert all(map(is_legal, own))


@pytest.mark.parametrize("name", ["product", "convolution"])
@given(sizes=st.tuples(*[st.integers(0, 20_000)] * 3))
def test_tiles_are_ordered_by_what_they_cost_at_any_extents(name: str, sizes: tuple[int, int, int]) -> None:
    _, _, subtask = case(name)
    assert isinstance(subtask.root, GemmRoot | ConvRoot)
    points = sizes[0] * sizes[1]
    subtask = replace(subtask, root=replace(subtask.root, extents=sizes), points=points)
    tiles = [tune for tune in variants_of(subtask) if "BLOCK_M" in tune.constants]
    assert all(map(is_legal, tiles))
    costs = [tile_cost(subtask, tune) for tune in tiles]
    assert costs == sorted(costs)


def test_large_products_begin_with_large_tiles_and_small_ones_with_many() -> None:
    _, _, subtask = case("product")
    assert isinstance(subtask.root, GemmRoot)

    def first(extent: int) -> Tune:
        extents = (extent, extent, extent)
        sized = replace(subtask, root=replace(subtask.root, extents=extents), points=extent**2)
        return next(tune for tune in variants_of(sized) if "BLOCK_M" in tune.constants)

    assert (first(8192).constants["BLOCK_M"], first(8192).constants["BLOCK_N"]) == (128, 128)
    assert (first(128).constants["BLOCK_M"], first(128).constants["BLOCK_N"]) == (32, 32)


@pytest.mark.parametrize(
    ("name", "tune"),
    [
        ("product", "tile-32x128x8"),
        ("convolution", "tile-128x32x8"),
        ("softmax", "two-warps-per-row"),
        ("softmax across", "columns-32x4"),
        ("halves", "packs-of-2"),
        pytest.param("softmax", "warp-per-row-8", marks=pytest.mark.slow),
        pytest.param("softmax across", "columns-64x16", marks=pytest.mark.slow),
        pytest.param("running sum", "scan-8x32", marks=pytest.mark.slow),
        pytest.param("running sum", "scan-1x512", marks=pytest.mark.slow),
        pytest.param("running sum across", "columns-32x8", marks=pytest.mark.slow),
        pytest.param("concatenation", "2-results-128", marks=pytest.mark.slow),
        pytest.param("pool", "window-per-thread-64", marks=pytest.mark.slow),
        pytest.param("product", "tile-128x128x16", marks=pytest.mark.slow),
    ],
)
def test_a_variant_is_right_on_the_emulator(name: str, tune: str, emulator: Emulator, tmp_path: Path) -> None:
    found, _, subtask = case(name)
    assert tune in {variant.name for variant in variants_of(subtask)}
    region = found.everything()
    check(emulator, tmp_path, found, [found.values_at(region)], tunes=[tune])


def test_after_a_race_the_fastest_come_first_and_the_slower_ones_only_until_one_is_correct() -> None:
    tunes = [Tune(name, "") for name in ("a", "b", "c", "d")]
    race = Race(times={"c": TIME, "a": TIME}, failed={"b": "crashes"}, left_out={"d": "no time was left"})
    assert [tune.name for tune in left_after(race, tunes, found=False)] == ["c", "a", "d"]
    assert [tune.name for tune in left_after(race, tunes, found=True)] == ["d"]


def brief() -> CodeBrief:
    """Of a subtask that was not begun."""
    found, _, _ = case("softmax")
    planned = Planned(id="s01", title="softmax", region=found.everything())
    return CodeBrief(graph=found.graph, subtask=planned, device="cuda NVIDIA H200 sm_90")


def after(race: Race, *attempts: Iteration) -> Candidate | None:
    """What the built-in Coder writes after that race and these attempts; the last kept one is the best."""
    raced = brief().subtask.model_copy(update={"race": race})
    kept = [attempt for attempt in attempts if attempt.outcome is Outcome.KEPT]
    told = replace(brief(), subtask=raced, attempts=attempts, best=kept[-1] if kept else None)
    return asyncio.run(BuiltinCoder().code(told))


def attempt(candidate: Candidate, outcome: Outcome, kind: Kind = Kind.DRAFT) -> Iteration:
    return Iteration(number=1, subtask="s01", attempt=1, kind=kind, candidate=candidate, outcome=outcome)


def test_the_built_in_coder_writes_the_winner_of_the_race() -> None:
    contestants = BuiltinCoder().variants(brief(), 7)
    assert len(contestants) == 7
    winner, second = contestants[-1], contestants[2]
    race = Race(times={winner.strategy: TIME, second.strategy: TIME})
    assert after(race) == winner
    assert after(race, attempt(winner, Outcome.WRONG)) == second
    for outcome in (Outcome.KEPT, Outcome.SLOWER):
        assert after(race, attempt(winner, outcome)) is None


def test_a_version_by_hand_is_no_contestant() -> None:
    winner = BuiltinCoder().variants(brief(), 7)[-1]
    by_hand = attempt(Candidate(source="// mine", strategy="by hand"), Outcome.KEPT, Kind.HUMAN)
    assert after(Race(times={winner.strategy: TIME}), by_hand) == winner


def test_where_a_race_timed_nobody_the_strategies_are_attempts_as_without_it() -> None:
    first = asyncio.run(BuiltinCoder().code(brief()))
    assert first
    for race in (Race(), Race(failed={c.strategy: "crashes" for c in BuiltinCoder().variants(brief(), 12)})):
        assert after(race) == first


def test_other_nodes_make_a_race_void() -> None:
    found, _, _ = case("product")
    raced = Planned(id="s01", title="all", region=found.everything(), race=Race(times={"a": TIME}))
    edit = commands.Edit(subtask="s01", nodes=(found.everything().nodes[0],), generation=0)
    plan = plan_edits.edited(Session(plan=Plan(subtasks=(raced,))), found.graph, edit)
    assert plan.subtasks[0].race is None
