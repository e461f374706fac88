"""The report: how the session stands, in words and tables; and the log of what was decided."""

from textual.content import Content

from stitch_tui.headless import summary
from stitch_tui.plain_text import one_line, printable
from stitch_tui.screens.pages import Page, heading, table
from stitch_tui.view.board import Board
from stitch_tui.view.wording import error_of_limit, headline, percent

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
    """The notes, latest last."""

    PAGE = " Log: decisions, routes, warnings"

    def __init__(self, board: Board) -> None:
        super().__init__()
        self._board = board

    def text(self) -> Content:
        if not self._board.notes:
            return Content("nothing yet")
        return Content("\n").join(
            Content.assemble(
                (f"{note.time:%H:%M:%S} " if note.time else "", "$muted"),
                (f"{note.kind:<9}", _STYLE.get(note.kind, "$muted")),
                one_line(note.text),
            )
            for note in self._board.notes
        )
