"""The profile: where the reference's time goes, and what each subtask could win; from what was measured."""

from textual.content import Content

from stitch_tui.agents.state import Subtask
from stitch_tui.plain_text import count, one_line
from stitch_tui.screens.pages import Page, heading, table
from stitch_tui.view.board import Board
from stitch_tui.view.wording import bar, duration_us, percent, times


class ProfileScreen(Page):
    """The reference's operators and the plan's bounds."""

    PAGE = " Profile"

    def __init__(self, board: Board) -> None:
        super().__init__()
        self._board = board

    def text(self) -> Content:
        profile, session = self._board.profile, self._board.session
        if profile is None:
            return Content("the reference has not been measured yet")
        parts = [Content(count(profile.nodes, "operator"))]
        if profile.time_us:
            total = duration_us(profile.time_us)
            parts.append(Content(f"each measured alone on {one_line(session.device)}, together {total}"))
        else:
            parts.append(Content("not measured: shares are estimates, good for ranking alone"))
        if profile.opaque:
            parts.append(Content(f"cannot be exported: {one_line(profile.opaque)}"))
        if profile.hottest:
            parts += [heading("Hottest operators"), table(self._hottest())]
        parts += [heading("Subtasks"), table(self._subtasks())]
        parts.append(Content.styled("\nNo Nsight profile belongs to this session.", "$muted"))
        return Content("\n").join(parts)

    def _hottest(self) -> list[tuple[str, ...]]:
        profile = self._board.profile
        rows: list[tuple[str, ...]] = [("operator", "time", "share", "", "module")]
        total = profile.time_us if profile and profile.time_us else 0.0
        for node in profile.hottest if profile else ():
            time = float(node.get("time_us") or 0.0)
            share = time / total if total else 0.0
            op = one_line(str(node.get("op", "")))
            module = one_line(str(node.get("module", "")))
            rows.append((op, duration_us(time), percent(share), bar(share, 20), module))
        return rows

    def _subtasks(self) -> list[tuple[str, ...]]:
        head = ("subtask", "share", "at most", "roofline", "operators", "what")
        return [head, *map(_row, self._board.session.subtasks)]


def _row(subtask: Subtask) -> tuple[str, ...]:
    return (
        subtask.id,
        percent(subtask.share) if subtask.share is not None else "",
        times(subtask.amdahl) if subtask.amdahl is not None else "",
        duration_us(subtask.bound_us) if subtask.bound_us is not None else "",
        str(len(subtask.region.nodes)),
        one_line(subtask.title),
    )
