"""The line on top: session, device, what is done now, and what waits for a decision."""

import re
from datetime import UTC, datetime

from textual.content import Content
from textual.widgets import Static

from stitch_tui.agents.state import Session, Status
from stitch_tui.plain_text import count, one_line
from stitch_tui.tools.iteration import Outcome
from stitch_tui.view.board import Board
from stitch_tui.view.wording import BASELINE, best_ratio, times

SHORT_CELLS = 100
PHASE = 2
"""The part that says what the run does."""
_DATE = re.compile(r"^\d{8}-\d{4}-")


class Banner(Static):
    """One line; parts that do not fit are left out from the right."""

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
            parts.append((f" {times(ratio.value)} over {BASELINE.get(name, name)} ", "$gain bold"))
        parts.append((" ", ""))
        device = one_line(session.device.removeprefix("cuda "))
        tail = [part for part in (device, session.autonomy, _tried(board), _spent(session)) if part]
        parts += [(f"{' · ' if n else ''}{part}", "$muted") for n, part in enumerate(tail)]
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


def _tried(board: Board) -> str:
    """How much was tried."""
    tried = board.session.iterations
    if not tried:
        return ""
    kept = sum(iteration.outcome is Outcome.KEPT for iteration in tried[-1000:])
    tries = count(len(tried), "iteration")
    return f"{tries}, {kept} kept" if len(tried) <= 1000 else tries


def _spent(session: Session) -> str:
    """What models were given and gave; empty where none is asked."""
    used = session.used
    if not used.calls:
        return ""
    tokens = f"{used.total / 1000:.3g}k tokens"
    return tokens if used.cost is None else f"{tokens}, cost {used.cost:.2f}"


def _fitting(parts: list[tuple[str, str]], width: int) -> list[tuple[str, str]]:
    """The first parts that fit; what the run does now is cut rather than left out."""
    shown: list[tuple[str, str]] = []
    room = width
    for text, style in parts:
        if len(text) > room:
            if len(shown) <= PHASE and room > 8:
                shown.append((text[: room - 1] + "…", style))
            break
        shown.append((text, style))
        room -= len(text)
    return shown
