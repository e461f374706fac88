"""The start screen's text: a session in two lines, and what the doctor found."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from textual.content import Content

from stitch_tui.agents.state import Status
from stitch_tui.plain_text import count, one_line, printable
from stitch_tui.session import Known

if TYPE_CHECKING:
    from stitch_tui.tools.doctor import Report


def heading(text: str) -> Content:
    return Content.styled(text.upper(), "$muted bold")


def session_row(known: Known, running: bool) -> Content:
    """Two lines: how it stands and its name; what it is about."""
    if running:
        glyph, style, word = "●", "$accent bold", "running"
    elif known.ended is None:
        glyph, style, word = "!", "$waiting bold", "killed"
    else:
        met = known.ended.status is Status.GOAL_MET
        glyph, style, word = (
            ("✓", "$gate-pass", "goal met") if met else ("■", "$waiting", str(known.ended.status))
        )
    device, tried = known.device.removeprefix("cuda "), count(known.iterations, "iteration")
    about = f"{known.target or known.reference}, {device}, {tried}"
    return Content.assemble(
        (f"{glyph} ", style),
        (one_line(known.name), "bold"),
        (f"  {word}", style),
        (f"\n  {one_line(about)}", "$muted"),
    )


def facts(report: "Report") -> Iterator[Content]:
    """What is there, what is missing with its fix, and by name what would merely add something."""
    style = "$gate-pass" if report.ready else "$gate-fail"
    yield Content.styled(f"{'✓' if report.ready else '✗'} {printable(report.verdict)}\n", style)
    for check in report.checks:
        if check.state != "absent":
            style = "$gate-pass" if check.state == "ok" else "$gate-fail"
            found = (printable(check.found), "$muted")
            yield Content.assemble((f"{check.state.glyph} ", style), f"{check.name:<16}", found)
            if check.fix:
                yield Content.styled(f"  {check.fix}", style)
    if absent := [check.name for check in report.checks if check.state == "absent"]:
        yield Content.styled(f"\n- without {', '.join(absent)}", "$muted")
        yield Content.styled("  `stitch doctor` says what each would add", "$muted")
