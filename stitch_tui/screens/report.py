"""The report: how the session stands, in words and tables; and the log of what was decided."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from textual.content import Content
from textual.events import Click

from stitch_tui.agents.state import Iteration
from stitch_tui.plain_text import count, one_line, printable
from stitch_tui.screens.pages import Page, heading, table
from stitch_tui.tools.verdict import Verdict
from stitch_tui.view.board import Board, Note
from stitch_tui.view.ending import summary
from stitch_tui.view.wording import GLYPH, error_of_limit, headline, percent, times, tone
from stitch_tui.widgets.cited import clicked, linked

_TONE = {
    "ask": "$waiting",
    "pass": "$gate-pass",
    "fail": "$gate-fail",
    "quiet": "$muted",
    "busy": "$accent",
    "plain": "",
}
SPARE = (6, 5, 7, 3)
"""Columns that a narrow report does without: error, vs eager, tries, share."""
_STYLE = {"error": "$gate-fail", "warning": "$waiting", "decision": "$accent", "run": "bold"}


class ReportScreen(Page):
    """As it was when it was opened, or given another size."""

    PAGE = " Report"

    def __init__(self, board: Board) -> None:
        super().__init__()
        self._board = board

    def text(self) -> Content:
        session = self._board.session
        parts = [
            Content.styled(printable(f"{session.reference} on {session.device}"), "bold"),
            Content(printable(f"branch {session.branch}, {self._board.phase}")),
            Content(_tried(session.iterations)),
        ]
        if session.coverage is not None:
            parts.append(Content(f"kernels cover {percent(session.coverage)} of the reference's time"))
        styles = [_TONE[tone(subtask.state)] for subtask in session.subtasks]
        parts += [heading("Subtasks"), table(self._rows(), self.width, styles=styles, spare=SPARE)]
        if said := [f"{s.id}: {s.reason}" for s in session.subtasks if s.reason]:
            parts += [heading("Why"), Content(printable("\n".join(said)))]
        if self._board.finished:
            ended = list(summary(session, self._board.finished))
            parts += [heading("How it ended"), Content("\n".join(ended))]
        return Content("\n").join(parts)

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [
            ("", "subtask", "state", "share", "best", "vs eager", "error", "tries", "what")
        ]
        for subtask in self._board.session.subtasks:
            best = self._board.best(subtask.id)
            share = percent(subtask.share) if subtask.share is not None else ""
            rows.append(
                (
                    GLYPH[subtask.state],
                    subtask.id,
                    str(subtask.state),
                    share,
                    *_numbers(best.verdict if best else None),
                    str(subtask.attempts),
                    one_line(subtask.title),
                )
            )
        if program := self._board.session.program:
            mark, word = "✓" if program.correct else "✗", str(program.category).replace("_", " ")
            rows.append((mark, "program", word, "", *_numbers(program), "", "all of it"))
        return rows


def _numbers(verdict: Verdict | None) -> tuple[str, str, str]:
    """Speedup over the best baseline and over eager, error."""
    if verdict is None:
        return "", "", ""
    eager = verdict.timing.speedups.get("eager") if verdict.timing else None
    return headline(verdict), times(eager.value) if eager else "", error_of_limit(verdict)


def _tried(iterations: Sequence[Iteration]) -> str:
    """``6 iterations: 3 kept, 1 slower, 2 wrong``."""
    outcomes = Counter(str(i.outcome) for i in iterations if i.outcome)
    said = ", ".join(f"{number} {outcome}" for outcome, number in outcomes.most_common())
    return count(len(iterations), "iteration") + (f": {said}" if said else "")


class LogScreen(Page):
    """The notes, latest last; a click on a citation leads to its text."""

    PAGE = " Log: decisions, routes, warnings"

    def __init__(self, board: Board) -> None:
        super().__init__()
        self._notes = tuple(board.notes)
        self._cited = tuple(citation for note in self._notes for citation in note.citations)

    def text(self) -> Content:
        if not self._notes:
            return Content("nothing yet")
        numbers = itertools.count()
        return Content("\n").join(_line(note, numbers) for note in self._notes)

    def on_click(self, event: Click) -> None:
        if (chosen := clicked(event, self._cited)) is not None:
            self.post_message(chosen)


def _line(note: Note, numbers: Iterator[int]) -> Content:
    """A note; its citations take the next numbers."""
    line = Content.assemble(
        (f"{note.time:%H:%M:%S} " if note.time else "", "$muted"),
        (f"{note.kind:<9}", _STYLE.get(note.kind, "$muted")),
        one_line(note.text),
    )
    links = [linked(citation, next(numbers)) for citation in note.citations]
    return Content.assemble(line, ": ", Content("; ").join(links)) if links else line
