"""The table of iterations: sortable by any column, the best and the last marked."""

from dataclasses import dataclass
from time import monotonic
from typing import ClassVar

from rich.console import JustifyMethod
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import DataTable

from stitch_tui.agents.state import Iteration
from stitch_tui.plain_text import one_line
from stitch_tui.tools.iteration import Outcome
from stitch_tui.view.board import Board
from stitch_tui.view.wording import OUTCOME, best_ratio, duration_us, error_of_limit, times

SHOWN = 150
"""Newest iterations that the table holds."""
APART_S = 0.5
"""Least time between two pictures: making the rows anew is the dearest thing on the screen."""
COLUMNS = ("#", "subtask", "kind", "outcome", "verdict", "time", "speedup", "vs eager", "error", "strategy")
NUMBERS = {"time", "speedup", "vs eager"}
"""Columns that stand at the right."""


class IterationTable(DataTable[Text]):
    """One row an iteration."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("S", "sort", "Sort", id="iterations.sort", tooltip="Sort by the next column."),
    ]

    @dataclass
    class Picked(Message):
        """An iteration to look at."""

        number: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, cursor_type="row", zebra_stripes=False)
        self._drawn = (-1, "", 0)
        self._shown: list[str] = []
        self._when = 0.0
        self._keys: dict[str, tuple[float | str, ...]] = {}
        self._order = 0
        self._reverse = True

    def update_from(self, board: Board, looked_at: int = 0) -> None:
        """Show the newest iterations of the session, in the columns that say something.

        Args:
            looked_at: the iteration that the other panes show; the cursor stands there until it is moved.
        """
        every = board.session.iterations
        chosen = list(every[-SHOWN:])
        best = {s.best for s in board.session.subtasks}
        state = (board.changes, self.app.theme, looked_at)
        if state == self._drawn or (self._drawn[0] >= 0 and monotonic() - self._when < APART_S):
            return
        self._drawn, self._when = state, monotonic()
        rows = [(i, _cells(i, i.number in best, i is every[-1])) for i in chosen]
        filled = [name for n, name in enumerate(COLUMNS) if not rows or any(cells[n] for _, cells in rows)]
        before = self._chosen
        self.clear(columns=filled != self._shown)
        if filled != self._shown:
            self._shown = filled
            for name in filled:
                self.add_column(Text(name, justify=_justify(name)), key=name)
        self._keys = {}
        for iteration, cells in rows:
            style = self._style(iteration, iteration.number in best)
            texts = (Text(cells[COLUMNS.index(name)], style, justify=_justify(name)) for name in filled)
            self.add_row(*texts, key=str(iteration.number))
            self._keys[str(iteration.number)] = _order(iteration)
        self._sorted()
        self._point(before if self.has_focus else str(looked_at))

    @property
    def _chosen(self) -> str:
        """Key of the row that the cursor is on; empty: there is none."""
        if not self.is_valid_row_index(self.cursor_row):
            return ""
        return self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value or ""

    def _point(self, key: str) -> None:
        """Put the cursor on an iteration, if it is among the rows."""
        if key in self._keys:
            self.move_cursor(row=self.get_row_index(key))

    def _style(self, iteration: Iteration, best: bool) -> str:
        """The colour of a row; Rich text knows no theme variables."""
        known = self.app.theme_variables
        quiet = iteration.outcome not in (None, Outcome.KEPT)
        color = known["gate-pass"] if best else known["muted"] if quiet else ""
        return "" if color.startswith("ansi") else color

    def action_sort(self) -> None:
        after = (n % len(COLUMNS) for n in range(self._order + 1, self._order + 1 + len(COLUMNS)))
        self._order = next(n for n in after if COLUMNS[n] in self._shown)
        self._reverse = COLUMNS[self._order] in ("#", "speedup", "vs eager")
        self._sorted()
        self.notify(f"sorted by {COLUMNS[self._order]}", timeout=2, markup=False)

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        event.stop()
        chosen = COLUMNS.index(str(event.column_key.value))
        self._order, self._reverse = chosen, not self._reverse if chosen == self._order else False
        self._sorted()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        event.stop()
        if event.row_key.value:
            self.post_message(self.Picked(int(event.row_key.value)))

    def _sorted(self) -> None:
        """Order the rows; those of which nothing is known come last, whichever way it goes."""
        ranks = {key: values[self._order] for key, values in self._keys.items()}
        known = sorted((k for k in ranks if ranks[k] != ""), key=lambda k: (ranks[k],), reverse=self._reverse)
        order = {key: n for n, key in enumerate([*known, *(k for k in ranks if ranks[k] == "")])}
        self.sort("#", key=lambda cell: order.get(_number(cell), 0))


def _justify(column: str) -> JustifyMethod:
    return "right" if column in NUMBERS else "left"


def _number(cell: Text) -> str:
    return cell.plain.split()[0]


def _cells(iteration: Iteration, best: bool, last: bool) -> tuple[str, ...]:
    verdict = iteration.verdict
    timing = verdict.timing if verdict else None
    found = best_ratio(timing) if timing else None
    eager = timing.speedups.get("eager") if timing else None
    mark = f" {'★' if best else ''}{'•' if last else ''}".rstrip()
    outcome = f"{OUTCOME[iteration.outcome]} {iteration.outcome}" if iteration.outcome else "…"
    strategy = iteration.candidate.strategy if iteration.candidate else ""
    return (
        f"{iteration.number}{mark}",
        iteration.subtask or "program",
        str(iteration.kind),
        outcome,
        str(verdict.category).replace("_", " ") if verdict else "",
        duration_us(timing.candidate.median_us) if timing else "",
        times(found[1].value) if found else "",
        times(eager.value) if eager else "",
        error_of_limit(verdict) if verdict else "",
        one_line(strategy),
    )


def _order(iteration: Iteration) -> tuple[float | str, ...]:
    """What each column is sorted by; an empty text stands for what is not known and comes last."""
    verdict = iteration.verdict
    timing = verdict.timing if verdict else None
    found = best_ratio(timing) if timing else None
    eager = timing.speedups.get("eager") if timing else None
    share = verdict.error / verdict.error_limit if verdict and verdict.error and verdict.error_limit else ""
    return (
        float(iteration.number),
        iteration.subtask,
        str(iteration.kind),
        str(iteration.outcome or ""),
        str(verdict.category) if verdict else "",
        timing.candidate.median_us if timing else "",
        found[1].value if found else "",
        eager.value if eager else "",
        share,
        iteration.candidate.strategy if iteration.candidate else "",
    )
