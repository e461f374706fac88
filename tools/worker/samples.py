"""Medians, bootstrap intervals and paired ratios of timed blocks; pure numbers, no torch."""

from collections.abc import Sequence
from functools import cache
from math import comb, sqrt
from statistics import median

FILLS_AHEAD = 12
"""Writes over the L2 cache before a cold launch of a subtask, each some 30 us: while the device is busy with
them the host queues the launch, so that a subtask's time is the device's.  A whole program gets one: what its
host costs, its user pays (measured on an H200: with one, torch.compile's guards of 50 to 100 us stood in the
time of a 60 us kernel)."""
QUEUE_FILLS = 24
"""Writes over the L2 cache ahead of a warm burst: the device is busy while its launches are queued."""
SETS = 10
"""Of inputs that launches rotate through, a candidate's and a baseline's alike."""
CONFIDENCE = 0.95
RESOLUTION, RESOLUTION_US = 0.005, 0.2
"""By which two processes with one program may differ for as long as they live: a share of their time, and
microseconds beside it.  Where their memory lies changes their times, and each one's blocks agree about it, so
no interval made of them can know.  Measured on an H200 (``benchmarks/timing_power.py``): ratios of 60 pairs
of processes scatter by 1.5 % at 9 us, at most 3.2 %, and by 0.01 % at 1 ms."""


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Bootstrap bounds of the median of `values`: the percentile method, over all resamples at once.

    Where the count is even the lower bound is that of the lower middle value, the upper one that of the
    upper: the interval is on the safe side.
    """
    ranked = sorted(values)
    below = _rank(len(ranked))
    return ranked[below], ranked[-1 - below]


@cache
def _rank(count: int) -> int:
    """How many order statistics the interval leaves out at each end.

    The middle value of a resample is at most the k-th smallest of `count` values when at least half of the
    `count` draws are, each with probability k / count (Efron 1982, ch. 10).
    """
    middle = (count + 1) // 2
    tail = (1 - CONFIDENCE) / 2

    def reached(k: int) -> float:
        share = k / count
        return sum(
            comb(count, drawn) * share**drawn * (1 - share) ** (count - drawn)
            for drawn in range(middle, count + 1)
        )

    return next(k for k in range(1, count + 1) if reached(k) > tail) - 1


def ratio(baseline: Sequence[float], candidate: Sequence[float]) -> dict[str, float]:
    """Speedup of paired blocks, baseline over candidate, with its interval: value, low, high.

    Blocks are resampled as pairs, so that a drift of the clock that both felt cancels; the interval is
    widened to either side by what two processes may differ by.
    """
    pairs = [before / after for before, after in zip(baseline, candidate, strict=True)]
    low, high = interval(pairs)
    slack = resolution(min(median(baseline), median(candidate)))
    return {"value": median(pairs), "low": low * (1 - min(slack, 1)), "high": high * (1 + slack)}


def resolution(time_us: float) -> float:
    """The share of `time_us` by which two processes with the same program may differ."""
    return RESOLUTION + RESOLUTION_US / time_us


def summary(times: Sequence[float], blocks: Sequence[float]) -> dict[str, float | int | None]:
    """`verdict.Samples` as JSON.

    Args:
        times: every launch, microseconds.
        blocks: the median of each block; their spread, not that of single launches, is the uncertainty.
    """
    low, high = interval(blocks)
    middle = median(times)
    slack = middle * resolution(middle) / sqrt(2)  # one process's part of what two differ by
    return {
        "median_us": middle,
        "low_us": max(0.0, min(low, middle) - slack),
        "high_us": max(high, middle) + slack,
        "count": len(times),
        "event_us": middle,
    }


def stable(medians: Sequence[float], window: int = 3, tolerance: float = 0.02) -> bool:
    """Have the last `window` bursts of a warm-up the same median, within `tolerance`?"""
    last = medians[-window:]
    return len(last) == window and max(last) <= min(last) * (1 + tolerance)
