"""The roofline: FLOP/s over FLOPs a byte, both logarithmic, and where a kernel stands below it."""

from collections.abc import Iterator
from math import log2

from textual.content import Content

from stitch_tui.agents.state import Work

ROWS = 7
_AXIS = 9
_MOST = 44
"""Columns that the plot takes at most."""
_REACH = 3
"""Powers of two that are shown on both sides of the kernel and the ridge."""


def drawn(work: Work, time_us: float, width: int) -> Iterator[Content]:
    """The plot as lines; nothing where there is no room, or no work to speak of."""
    columns = min(width - _AXIS, _MOST)
    if columns < 16 or not work.flops or not work.bytes_moved or time_us <= 0:
        return
    at, ridge = log2(work.flops / work.bytes_moved), log2(work.peak_flops / work.bandwidth)
    reached, peak = log2(work.flops / (time_us * 1e-6)), log2(work.peak_flops)
    left, right = min(at, ridge) - _REACH, max(at, ridge) + _REACH
    low = min(reached, peak - (ridge - left)) - 0.5
    grid = [[(" ", "")] * columns for _ in range(ROWS)]

    def row(height: float) -> int:
        return min(max(round((peak - height) / (peak - low) * (ROWS - 1)), 0), ROWS - 1)

    for column in range(columns):
        place = left + (right - left) * column / (columns - 1)
        grid[row(min(peak, peak + place - ridge))][column] = ("─" if place >= ridge else "╱", "$primary")
    column = round((at - left) / (right - left) * (columns - 1))
    bound = min(peak, peak + at - ridge)
    for between in range(row(bound) + 1, row(reached)):
        grid[between][column] = ("┆", "$muted")
    grid[row(reached)][column] = ("●", "$gain bold")
    labels = {0: _flops(work.peak_flops)}
    labels.setdefault(row(reached), _flops(work.flops / (time_us * 1e-6)))
    for n, cells in enumerate(grid):
        yield Content.assemble((f"{labels.get(n, ''):>{_AXIS - 1}} ", "$muted"), *cells)
    what = "memory" if at < ridge else "compute"
    yield Content.styled(f"{2**at:.3g} FLOPs a byte, {what}-bound (ridge {2**ridge:.3g})", "$muted")


def _flops(value: float) -> str:
    """``67 TF/s``, in three digits."""
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= size:
            return f"{value / size:.3g} {unit}F/s"
    return f"{value:.3g} F/s"
