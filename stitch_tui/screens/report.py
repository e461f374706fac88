"""The report: how the session stands, in words and tables; and the log of what was decided."""

from collections.abc import Iterator
from itertools import count

from textual.content import Content
from textual.events import Click

from stitch_tui.headless import summary
from stitch_tui.plain_text import one_line, printable
from stitch_tui.screens.pages import Page, heading, table
from stitch_tui.view.board import Board, Note
from stitch_tui.view.wording import error_of_limit, headline, percent
from stitch_tui.widgets.cited import clicked, linked

_STYLE = {"error": "$gate-fail", "warning": "$waiting", "decision": "$accent", "run": "bold"}


class ReportScreen(Page):
    """As it was when it was opened."""

    PAGE = " Report"

    def __init__(self, board: Board) -> None:
        super().__init__()
        self._board = board

    def text(self) -> Content:
        session = self._board.session
        parts = [
            Content(printable(f"{session.id}: {session.reference} on {session.device}")),
            Content(printable(f"branch {session.branch}, {self._board.phase}")),
            heading("Subtasks"),
            table(self._rows()),
        ]
        if session.coverage is not None:
            parts.append(Content(f"\ncovers {percent(session.coverage)} of the reference's time"))
        if self._board.finished:
            ended = list(summary(session, self._board.finished))
            parts += [heading("How it ended"), Content("\n".join(ended))]
        return Content("\n").join(parts)

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("subtask", "state", "best", "error", "tries", "what")]
        for subtask in self._board.session.subtasks:
            best = self._board.best(subtask.id)
            verdict = best.verdict if best else None
            error = error_of_limit(verdict) if verdict else ""
            reason = f" ({subtask.reason})" if subtask.reason else ""
            what = one_line(f"{subtask.title}{reason}")
            number = headline(verdict) or "-"
            rows.append((subtask.id, str(subtask.state), number, error, str(subtask.attempts), what))
        if self._board.session.program:
            program = self._board.session.program
            category, error = str(program.category), error_of_limit(program)
            rows.append(("program", category, headline(program), error, "", "all of it"))
        return rows


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
        numbers = count()
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
