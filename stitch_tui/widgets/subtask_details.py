"""Below the plan: all that is known of the selected subtask."""

from collections.abc import Iterator

from textual.content import Content
from textual.widgets import Static

from stitch_tui.agents.state import Subtask
from stitch_tui.plain_text import count, one_line, printable
from stitch_tui.view.wording import duration_us, percent, times

_LABEL = 9


class SubtaskDetails(Static):
    """Empty, and then not shown, while no subtask is selected."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)

    def show(self, subtask: Subtask | None) -> None:
        self.update(Content("\n").join(_lines(subtask)) if subtask else Content(""))
        self.set_class(subtask is None, "-empty")


def _lines(subtask: Subtask) -> Iterator[Content]:
    yield Content.styled(one_line(f"{subtask.id} {subtask.title}"), "bold")
    if subtask.direction:
        yield Content.styled(printable(f"→ {subtask.direction}"), "$accent")
    for text in (subtask.strategy, subtask.reason):
        if text:
            yield Content(printable(text))
    yield _fact("nodes", " ".join(subtask.covers))
    if subtask.share is not None:
        yield _fact("share", f"{percent(subtask.share)} of the reference's time")
    if subtask.bound_us is not None:
        yield _fact("bound", f"{duration_us(subtask.bound_us)} by the roofline")
    if subtask.amdahl is not None:
        yield _fact("at most", f"{times(subtask.amdahl)} for the program")
    if (race := subtask.race) and race.times:
        yield _fact("raced", f"{race.winner}, fastest of {count(len(race.times), 'variant')}")


def _fact(name: str, text: str) -> Content:
    return Content.assemble((f"{name:<{_LABEL}}", "$muted"), one_line(text))
