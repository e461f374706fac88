"""Speedup over iterations: the best so far as a line, each attempt as a mark above its number."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content
from textual.widgets import Static

from stitch_tui.agents.state import Iteration
from stitch_tui.tools.iteration import Outcome
from stitch_tui.view.wording import OUTCOME, best_ratio, times

_AXIS = 7
_WIDEST = 8
"""Cells that an iteration takes at most."""
_APART = 0.01
"""A speedup that differs from 1 by this is drawn off its line."""
_NUMBERED = 4
"""Rows from which on one of them is spent on the iterations' numbers."""
_STYLE = {
    Outcome.KEPT: "$gate-pass",
    Outcome.SLOWER: "$regression",
    Outcome.WRONG: "$gate-fail",
    Outcome.ERROR: "$gate-fail",
}


@dataclass(frozen=True)
class Point:
    """One iteration on the chart."""

    number: int
    speedup: float | None
    """Over the best baseline; None: not timed."""
    outcome: Outcome | None


def is_timed(shown: Sequence[Point]) -> bool:
    """Is there a speedup to draw?"""
    return any(point.speedup is not None for point in shown)


def points(iterations: Sequence[Iteration]) -> list[Point]:
    """The judged iterations of one subtask, or of the program."""
    found = []
    for iteration in iterations:
        timing = iteration.verdict.timing if iteration.verdict else None
        ratio = best_ratio(timing) if timing else None
        found.append(Point(iteration.number, ratio[1].value if ratio else None, iteration.outcome))
    return found


class SpeedupChart(Static):
    """Draws the points in the room it has; the newest ones when there are more than columns."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._points: list[Point] = []

    def show(self, shown: list[Point]) -> None:
        if shown != self._points:
            self._points = shown
            self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        height, width = self.content_size.height, self.content_size.width
        if height < 1 or width < _AXIS + 4:
            return
        self.update(drawn(self._points, width, height))


def drawn(shown: Sequence[Point], width: int, height: int) -> Content:
    """The chart as text of that size."""
    if not shown:
        return Content.styled("no iteration yet", "$muted")
    timed = [point.speedup for point in shown if point.speedup is not None]
    if not is_timed(shown) or height < 3:
        return _marks(shown, width)
    room = width - _AXIS
    step = max(min(room // len(shown), _WIDEST), 1)
    shown = list(shown)[-(room // step) :]
    numbers = [] if height < _NUMBERED else [_numbers(shown, step)]
    height -= len(numbers)
    low, high = min([*timed, 1.0]), max([*timed, 1.0])
    low, high = low - (high - low) * 0.05, high + max((high - low) * 0.05, 0.05)
    grid = [[(" ", "")] * room for _ in range(height)]

    def row(value: float) -> int:
        """Only what is about 1 stands on the line of 1."""
        found = round((high - value) / (high - low) * (height - 1))
        if abs(value - 1) >= _APART and found == round((high - 1) / (high - low) * (height - 1)):
            found += 1 if value < 1 else -1
        return min(max(found, 0), height - 1)

    for column in range(room):
        grid[row(1.0)][column] = ("┈", "$muted")
    best: float | None = None
    for n, point in enumerate(shown):
        kept = point.outcome is Outcome.KEPT
        if point.speedup is not None and kept and (best is None or point.speedup > best):
            best = point.speedup
        for column in range(n * step, (n + 1) * step):
            if best is not None:
                grid[row(best)][column] = ("━", "$gain" if best > 1 else "$regression")
        if point.speedup is not None:
            mark = "●" if kept else "○"
            style = "$gain bold" if kept and point.speedup > 1 else "$regression"
            grid[row(point.speedup)][n * step] = (mark, style)
        elif point.outcome is not None:
            grid[height - 1][n * step] = (OUTCOME[point.outcome], _STYLE.get(point.outcome, "$muted"))
    labels = {row(high): times(high), row(1.0): "1.00x"} | ({row(best): times(best)} if best else {})
    lines = [
        Content.assemble((f"{labels.get(n, ''):>{_AXIS - 1}} ", "$muted"), *cells)
        for n, cells in enumerate(grid)
    ]
    return Content("\n").join([*lines, *numbers])


def _numbers(shown: Sequence[Point], step: int) -> Content:
    """The iterations' numbers below their marks; of close ones, as many as stay apart."""
    text, least = "", 0
    for n, point in enumerate(shown):
        if n * step >= least:
            text = f"{text:<{n * step}}{point.number}"
            least = len(text) + 1
    return Content.styled(f"{'':{_AXIS}}{text}"[: _AXIS + len(shown) * step + 2], "$muted")


def _marks(shown: Sequence[Point], width: int) -> Content:
    """Outcomes only, where nothing was timed."""
    marks = [
        (f"{OUTCOME[p.outcome] if p.outcome else '…'} ", _STYLE.get(p.outcome, "$muted") if p.outcome else "")
        for p in list(shown)[-(width // 2) :]
    ]
    return Content.assemble(*marks)
