"""The profile: where the reference's time goes, what each subtask could win, what limits its best version."""

from collections.abc import Iterator

from textual.content import Content

from stitch_tui.agents.state import Advice, Subtask
from stitch_tui.plain_text import count, one_line, printable
from stitch_tui.screens.pages import Page, heading, table
from stitch_tui.tools.profiling.profile import Profile, Trace
from stitch_tui.tools.profiling.summary import lines
from stitch_tui.view.board import Board
from stitch_tui.view.profile_text import evidence_sentence, limit_sentence, tables, trace_rows
from stitch_tui.view.wording import bar, duration_us, percent, times


class ProfileScreen(Page):
    """The reference's operators and passes, the plan's bounds, the profiles of the best versions."""

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
            parts += [heading("Hottest operators"), table(self._hottest(), self.width, spare=(3,))]
        parts += [heading("Whole passes"), *_traced(profile.trace, self.width)]
        parts += [heading("Subtasks"), table(self._subtasks(), self.width, spare=(4, 3))]
        for subtask in session.subtasks:
            best = session.best_of(subtask)
            if best and best.verdict and best.verdict.profile:
                parts += [heading(f"{subtask.id}, best version"), *_limits(best.verdict.profile, best.advice)]
        if session.program and session.program.profile:
            program = session.program.profile
            trace = Trace(system=program.system, evidence=program.system_evidence, why=program.why)
            parts += [heading("Stitched program"), *_traced(trace, self.width)]
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


def _traced(trace: Trace, width: int) -> Iterator[Content]:
    """A trace: who made it, what it says of the whole, its tables."""
    yield Content(evidence_sentence(trace))
    if trace.system is None:
        return
    yield Content(limit_sentence(trace.system))
    yield table(trace_rows(trace.system), width, head=False)
    for title, rows in tables(trace.system):
        yield Content.styled(f"\n{title}", "$muted bold")
        yield table(rows, width)


def _limits(profile: Profile, advice: Advice | None) -> Iterator[Content]:
    """What was measured of a version, and what its rules or a model made of that."""
    yield from (Content(printable(line)) for line in lines(profile))
    yield from (Content.styled(printable(f"note: {note}"), "$muted") for note in profile.notes)
    if advice:
        yield Content.assemble((f"{advice.bottleneck}: ", "$hot bold"), (printable(advice.evidence), ""))
        yield Content(printable(f"→ {advice.change}"))


def _row(subtask: Subtask) -> tuple[str, ...]:
    return (
        subtask.id,
        percent(subtask.share) if subtask.share is not None else "",
        times(subtask.amdahl) if subtask.amdahl is not None else "",
        duration_us(subtask.bound_us) if subtask.bound_us is not None else "",
        str(len(subtask.region.nodes)),
        one_line(subtask.title),
    )
