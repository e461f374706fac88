"""Medians, bootstrap intervals and paired ratios of timed blocks; pure numbers, no torch."""

from collections.abc import Sequence
from functools import cache
from math import comb
from statistics import median

FILLS_AHEAD = 12
"""Writes over the L2 cache before a cold launch of a subtask, each some 30 us: while the device is busy with
them the host queues the launch, so that a subtask's time is the device's.  A whole program gets one: what its
host costs, its user pays (measured on an H200: with one, torch.compile's guards of 50 to 100 us stood in the
time of a 60 us kernel)."""
QUEUE_FILLS = 24
"""Writes over the L2 cache ahead of a warm burst: the device is busy while its launches are queued."""
CONFIDENCE = 0.95
RESOLUTION = 0.005
"""By which a ratio's interval is widened to either side.  Where a process's memory happens to lie changes its
times for as long as it lives, so its blocks agree with each other about a difference that another process
with the same program would not show; no interval made of them can know."""


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

    Blocks are resampled as pairs, so that a drift of the clock that both felt cancels.
    """
    pairs = [before / after for before, after in zip(baseline, candidate, strict=True)]
    low, high = interval(pairs)
    return {"value": median(pairs), "low": low * (1 - RESOLUTION), "high": high * (1 + RESOLUTION)}


def summary(times: Sequence[float], blocks: Sequence[float]) -> dict[str, float | int | None]:
    """`verdict.Samples` as JSON.

    Args:
        times: every launch, microseconds.
        blocks: the median of each block; their spread, not that of single launches, is the uncertainty.
    """
    low, high = interval(blocks)
    middle = median(times)
    return {
        "median_us": middle,
        "low_us": min(low, middle),
        "high_us": max(high, middle),
        "count": len(times),
        "event_us": middle,
    }


def stable(medians: Sequence[float], window: int = 3, tolerance: float = 0.02) -> bool:
    """Have the last `window` bursts of a warm-up the same median, within `tolerance`?"""
    last = medians[-window:]
    return len(last) == window and max(last) <= min(last) * (1 + tolerance)
