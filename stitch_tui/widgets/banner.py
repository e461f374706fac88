"""The line on top: session, device, what is done now, and what waits for a decision."""

import re
from datetime import UTC, datetime

from textual.content import Content
from textual.widgets import Static

from stitch_tui.agents.state import Status
from stitch_tui.plain_text import count, one_line
from stitch_tui.tools.iteration import Outcome
from stitch_tui.view.board import Board
from stitch_tui.view.wording import best_ratio, times

SHORT_CELLS = 100
_DATE = re.compile(r"^\d{8}-\d{4}-")


class Banner(Static):
    """One line; what does not fit is left out from the right."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._shown = Board(), ""

    def on_mount(self) -> None:
        self.set_interval(1.0, self._count_down)

    def _count_down(self) -> None:
        """The line says how long a model's endpoint is waited for still; nothing else changes by itself."""
        if self._shown[0].waits:
            self._draw(*self._shown)

    def show(self, board: Board, trouble: str) -> None:
        """Draw the line; `trouble` stands in place of the phase while the engine cannot be reached."""
        self._shown = board, trouble
        self._draw(board, trouble)

    def on_resize(self) -> None:
        self._draw(*self._shown)

    def _draw(self, board: Board, trouble: str) -> None:
        session = board.session
        parts: list[tuple[str, str]] = [(" stitch ", "$button-color-foreground on $primary bold")]
        parts += [(f" {one_line(self._short(session.id))} ", "bold")]
        parts += [_phase(board, trouble)]
        if waiting := len(board.proposed):
            parts.append((f" {waiting} to decide ", "$background on $waiting bold"))
        if (program := session.program) and program.timing and (found := best_ratio(program.timing)):
            name, ratio = found
            parts.append((f" {times(ratio.value)} over {name} ", "$gain bold"))
        tail = [one_line(session.device)] if session.device else []
        if session.autonomy:
            tail.append(session.autonomy)
        tail.append(_budget(board))
        parts.append((" ", ""))
        parts.append((" · ".join(part for part in tail if part), "$muted"))
        self.update(Content.assemble(*_fitting(parts, self.size.width)))

    def _short(self, session: str) -> str:
        """The session's name, without its date where there is little room."""
        name = session or "session"
        return name if self.size.width >= SHORT_CELLS else _DATE.sub("", name)


def _phase(board: Board, trouble: str) -> tuple[str, str]:
    if trouble:
        return f" ✗ {one_line(trouble)} ", "$gate-fail bold"
    if board.session.paused and board.running:
        return " ‖ paused ", "$waiting bold"
    if board.finished:
        met = board.finished.status is Status.GOAL_MET
        return f" {'✓' if met else '■'} {board.phase} ", "$gate-pass bold" if met else "$waiting bold"
    if waits := board.countdown(datetime.now(UTC)):
        return f" ‖ {one_line(waits)} ", "$waiting bold"
    return f" ● {one_line(board.phase)} ", "$accent bold"


def _budget(board: Board) -> str:
    """How much was tried."""
    tried = board.session.iterations
    if not tried:
        return ""
    kept = sum(iteration.outcome is Outcome.KEPT for iteration in tried[-1000:])
    tries = count(len(tried), "iteration")
    return f"{tries}, {kept} kept" if len(tried) <= 1000 else tries


def _fitting(parts: list[tuple[str, str]], width: int) -> list[tuple[str, str]]:
    shown: list[tuple[str, str]] = []
    room = width
    for text, style in parts:
        if len(text) > room:
            if room > 8:
                shown.append((text[: room - 1] + "…", style))
            break
        shown.append((text, style))
        room -= len(text)
    return shown
