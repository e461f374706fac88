"""Medians, bootstrap intervals and paired ratios of timed blocks; pure numbers, no torch."""

import random
from collections.abc import Callable, Sequence
from statistics import median

FILLS_AHEAD = 12
"""Writes over the L2 cache before a cold launch of a subtask, each some 30 us: while the device is busy with
them the host queues the launch, so that a subtask's time is the device's.  A whole program gets one: what its
host costs, its user pays (measured on an H200: with one, torch.compile's guards of 50 to 100 us stood in the
time of a 60 us kernel)."""
RESAMPLES = 2000
CONFIDENCE = 0.95


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Bootstrap bounds of the median of `values` (percentile method)."""
    return _bounds(values, median, seed)


def ratio(baseline: Sequence[float], candidate: Sequence[float], seed: int = 0) -> dict[str, float]:
    """Speedup of paired blocks, baseline over candidate, with its interval: value, low, high.

    Blocks are resampled as pairs, so that a drift of the clock that both felt cancels.
    """
    pairs = [before / after for before, after in zip(baseline, candidate, strict=True)]
    low, high = _bounds(pairs, median, seed)
    return {"value": median(pairs), "low": low, "high": high}


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


def _bounds(
    values: Sequence[float], statistic: Callable[[Sequence[float]], float], seed: int
) -> tuple[float, float]:
    generator = random.Random(seed)
    drawn = sorted(statistic(generator.choices(values, k=len(values))) for _ in range(RESAMPLES))
    tail = (1 - CONFIDENCE) / 2
    return drawn[int(tail * RESAMPLES)], drawn[min(RESAMPLES - 1, int((1 - tail) * RESAMPLES))]
