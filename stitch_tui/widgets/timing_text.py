"""Times as lines: the candidate's, and against each baseline, in as many columns as there is room for."""

from collections.abc import Iterator

from textual.content import Content

from stitch_tui.plain_text import one_line
from stitch_tui.tools.verdict import Ratio, Samples, Timing
from stitch_tui.view.wording import BASELINE, best_ratio, duration_us, interval_us, times

_STYLE = {"faster": "$gain", "slower": "$regression"}
Cells = list[tuple[str, str]]
"""A row: texts with their styles."""


def headline(timing: Timing) -> Content:
    """The one number that counts: the speedup over the fastest baseline."""
    if (found := best_ratio(timing)) is None:
        return Content("")
    name, ratio = found
    words = f"{times(ratio.value)} over {BASELINE.get(name, name)}"
    unsure = ": not distinguishable" if ratio.verdict not in _STYLE else ""
    return Content.styled(one_line(words + unsure), f"{_style(ratio)} bold")


def lines(timing: Timing, width: int) -> Iterator[Content]:
    """The candidate's time, then what it was compared with, in `width` cells."""
    yield Content.assemble(("candidate  ", "$muted"), (interval_us(timing.candidate), "bold"))
    compared = [(name, s, timing.speedups.get(name)) for name, s in timing.baselines.items()]
    compared += [(name, beside.samples, beside.speedup) for name, beside in timing.lower_precision.items()]
    if timing.replaced:
        compared.append(("program before", timing.replaced.samples, timing.replaced.speedup))
    yield from _table([_row(*row, best=row[0] == timing.best_baseline) for row in compared], width)
    if timing.bind_us:
        yield Content.styled(f"{duration_us(timing.bind_us)} more when the weights change", "$muted")
    for note in timing.notes:
        yield Content.styled(one_line(note), "$muted")


def _row(name: str, samples: Samples, ratio: Ratio | None, *, best: bool) -> Cells:
    """Name, median, its interval, speedup, its interval, what that means."""
    median, _, interval = interval_us(samples).rpartition(" [")
    cells: Cells = [
        (one_line(BASELINE.get(name, name)), "bold" if best else ""),
        (median, "$muted"),
        (f"[{interval}", "$muted"),
    ]
    if ratio is None:
        return [*cells, ("", ""), ("", ""), ("", "")]
    style = _style(ratio)
    spread = f"[{ratio.low:.2f}, {ratio.high:.2f}]"
    return [*cells, (times(ratio.value), f"{style} bold"), (spread, style), (ratio.verdict, style)]


_CHOICES = ((0, 1, 2, 3, 4, 5), (0, 1, 3, 4, 5), (0, 1, 3, 4), (0, 3, 4), (0, 3))
"""Columns that are shown, the most telling set that fits."""
_NUMBERS = (1, 3)
"""Columns that stand at the right."""


def _table(rows: list[Cells], width: int) -> Iterator[Content]:
    if not rows:
        return
    widths = [max(len(row[n][0]) for row in rows) for n in range(len(rows[0]))]
    shown = next((c for c in _CHOICES if sum(widths[n] + 1 for n in c) - 1 <= width), _CHOICES[-1])
    for row in rows:
        cells = []
        for n in shown:
            text, style = row[n]
            cells.append((text.rjust(widths[n]) if n in _NUMBERS else text.ljust(widths[n]), style))
            cells.append((" ", ""))
        yield Content.assemble(*cells).rstrip()


def _style(ratio: Ratio) -> str:
    return _STYLE.get(ratio.verdict, "$muted")
