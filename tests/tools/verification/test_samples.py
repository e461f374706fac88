"""Timed blocks: how often a difference is seen that is none, and whether one is seen that there is."""

import json
import random
from dataclasses import dataclass
from itertools import pairwise
from math import comb
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stitch_tui.tools.verdict import Ratio, Samples
from stitch_tui.tools.worker.samples import CONFIDENCE, interval, ratio, resolution, stable, summary

TIMES = st.lists(st.floats(50.0, 1e6), min_size=4, max_size=20)
FALSE_POSITIVES, DETECTED, RUNS = 0.08, 0.90, 250


@dataclass(frozen=True)
class Machine:
    """How times scatter: shares of a time, each a standard deviation."""

    launch: float
    """From launch to launch."""
    drift: float
    """Of the clock, from block to block; both programs feel it."""
    block: float = 0.0
    """Of one program's blocks among each other."""
    process: float = 0.0
    """Of one process among many with the same program, as long as it lives."""
    time_us: float = 1000.0
    """What the program takes."""
    process_us: float = 0.07
    """As `process`, in microseconds: an H200's, where pairs differ by 0.1 us in their standard deviation."""
    outliers: float = 0.02
    """Share of launches that take up to twice as long."""


MACHINES = {
    "quiet": Machine(launch=0.002, drift=0.001),
    "noisy": Machine(launch=0.02, drift=0.01, block=0.002),
    "drifting": Machine(launch=0.005, drift=0.03),
    "processes that differ": Machine(launch=0.002, drift=0.001, process=0.001),
    "many outliers": Machine(launch=0.005, drift=0.005, outliers=0.2),
    "short launches": Machine(launch=0.01, drift=0.001, time_us=9.2, process_us=0.095),
}


def race(machine: Machine, slower: float, generator: random.Random) -> Ratio:
    """One timing of a program against one that takes `slower` times as long: blocks A B B A."""
    own = [
        machine.time_us * factor * (1 + generator.gauss(0, machine.process))
        + generator.gauss(0, machine.process_us)
        for factor in (1, slower)
    ]
    blocks: list[list[float]] = [[], []]
    clock = 1.0
    for block in range(12):
        for program in (0, 1) if block % 2 == 0 else (1, 0):
            clock *= 1 + generator.gauss(0, machine.drift / 4)
            level = own[program] * clock * (1 + generator.gauss(0, machine.block))
            times = [level * (1 + generator.gauss(0, machine.launch)) for _ in range(10)]
            blocks[program].append(
                median(t * (1 + generator.random() * (generator.random() < machine.outliers)) for t in times)
            )
    return Ratio(**ratio(blocks[1], blocks[0]))


@pytest.mark.parametrize("name", MACHINES)
def test_the_same_program_is_rarely_called_different(name: str) -> None:
    generator = random.Random(name)
    called = sum(race(MACHINES[name], 1.0, generator).verdict != "not distinguishable" for _ in range(RUNS))
    tail = sum(
        comb(RUNS, k) * FALSE_POSITIVES**k * (1 - FALSE_POSITIVES) ** (RUNS - k) for k in range(called + 1)
    )
    assert tail < 1 - CONFIDENCE, f"{called} of {RUNS}: a rate of {FALSE_POSITIVES:.0%} is credible"


@pytest.mark.parametrize("name", ["quiet", "noisy", "processes that differ", "many outliers"])
def test_three_percent_are_found(name: str) -> None:
    generator = random.Random(name)
    found = sum(race(MACHINES[name], 1.03, generator).verdict == "faster" for _ in range(100))
    assert found >= 100 * DETECTED, found


@settings(deadline=None, max_examples=15)
@given(TIMES)
def test_a_program_against_itself_is_not_distinguishable(times: list[float]) -> None:
    found = Ratio(**ratio(times, times))
    assert found.value == 1.0
    assert found.verdict == "not distinguishable"


@settings(deadline=None, max_examples=15)
@given(TIMES, st.floats(1.1, 50))
def test_a_constant_speedup_is_found_whatever_the_clock_does(times: list[float], factor: float) -> None:
    found = Ratio(**ratio([factor * t for t in times], times))
    assert found.verdict == "faster"
    assert abs(found.value - factor) < 1e-6 * factor


@settings(deadline=None, max_examples=15)
@given(TIMES)
def test_intervals_hold_their_median(times: list[float]) -> None:
    low, high = interval(times)
    assert min(times) <= low <= median(times) <= high <= max(times)
    found = Samples.model_validate(summary(times, times))
    assert found.low_us <= found.median_us <= found.high_us


@settings(deadline=None, max_examples=20)
@given(st.integers(7, 40), st.integers(0, 2**32))
def test_the_bounds_are_those_of_drawn_resamples(count: int, seed: int) -> None:
    generator = random.Random(seed)
    values = sorted(generator.random() for _ in range(count))
    drawn = sorted(sorted(generator.choices(values, k=count))[(count - 1) // 2] for _ in range(4000))
    low, _ = interval(values)
    below, above = drawn[int(0.018 * 4000)], drawn[int(0.032 * 4000)]
    assert below <= low <= above


def test_pairs_of_processes_on_an_h200_are_hardly_ever_called_different() -> None:
    """Recorded before intervals were widened: value, low and high of each A/A run, and its time."""
    recorded = json.loads((Path(__file__).parent / "recorded" / "same_program_h200.json").read_text())
    called = {
        name: sum(
            low * (1 - resolution(time_us)) > 1 or high * (1 + resolution(time_us)) < 1
            for _, low, high, time_us in runs
        )
        for name, runs in recorded["runs"].items()
    }
    assert called == {"short": 0, "long": 0}


def test_more_blocks_make_narrower_intervals() -> None:
    widths = []
    for count in (6, 12, 24, 48):
        values = [k / (count - 1) for k in range(count)]
        low, high = interval(values)
        widths.append(high - low)
    assert all(one > other for one, other in pairwise(widths))


def test_a_warm_up_is_stable_when_its_last_medians_agree() -> None:
    assert not stable([100.0, 100.0])
    assert not stable([130.0, 100.0, 110.0])
    assert stable([300.0, 100.0, 101.0, 100.5])
