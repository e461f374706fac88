"""Help: the keys that work where the focus was, every other one with its id, and the commands."""

from textual.binding import ActiveBinding
from textual.content import Content
from textual.screen import Screen

from stitch_tui.screens.pages import Page, heading, laid_out, table
from stitch_tui.screens.steering import Steering
from stitch_tui.view.orders import ENTRIES
from stitch_tui.view.wording import GLYPH

INTRO = """\
Letters act on the selected subtask while a pane has the focus; in the composer they are text.
Nothing here is modal: a proposal is a row marked ?, and the run goes on while you read.
"""


GROUPS = {
    "decide": "Decide",
    "steer": "Steer",
    "run": "The run",
    "plan": "The plan",
    "code": "The plan",
    "view": "What is shown",
    "app": "Everywhere",
}
"""First part of a binding's id -> what it is about; others are keys of a pane or screen."""
HERE = "Here"


class HelpScreen(Page):
    """Made for the screen that lies below it."""

    PAGE = " Help"

    def __init__(self, below: Screen[object]) -> None:
        super().__init__()
        self._active = list(below.active_bindings.values())
        self._has_composer = isinstance(below, Steering)

    def text(self) -> Content:
        keys = self._keys()
        parts = [Content(INTRO), *keys, *_composer(self.width)] if self._has_composer else keys
        return Content("\n").join(parts)

    def _keys(self) -> list[Content]:
        """A table of keys for each group, all with the same widths; their ids where there is room."""
        groups: dict[str, dict[str, tuple[str, ...]]] = {name: {} for name in (HERE, *GROUPS.values())}
        for active in self._active:
            if id := active.binding.id:
                rows = groups[GROUPS.get(id.partition(".")[0], HERE)]
                keys = f"{rows[id][0]} {self._key(active)}" if id in rows else self._key(active)
                rows[id] = (keys, active.tooltip or active.binding.tooltip or active.binding.description, id)
        heads = [("key", "does", "id for ui.keymap")]
        every = [*heads, *(row for rows in groups.values() for row in rows.values())]
        lines = laid_out(every, self.width, spare=(2,))
        shown, begin = [lines[0]], 1
        for name, rows in groups.items():
            if rows:
                shown += [heading(name), *lines[begin : begin + len(rows)]]
            begin += len(rows)
        return shown

    def _key(self, active: ActiveBinding) -> str:
        return self.app.get_key_display(active.binding)


def _composer(width: int) -> list[Content]:
    """What can be written, and the states that it is about."""
    return [
        heading("The composer"),
        Content("Text without a slash redirects the subtask after the arrow; `3: text` another one."),
        Content("Enter sends, Ctrl+J begins a line, Up and Down walk through what was sent.\n"),
        table([("command", "what it does"), *((f"/{e.name} {e.words}", e.text) for e in ENTRIES)], width),
        heading("States"),
        Content("   ".join(f"{glyph} {state}" for state, glyph in GLYPH.items())),
    ]
