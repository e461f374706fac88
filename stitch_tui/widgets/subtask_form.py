"""Editing or adding a subtask in place, below the list; what was typed stays until it is saved or let go."""

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Label, TextArea

from stitch_tui.agents.state import Subtask


@dataclass(frozen=True)
class Entry:
    """What the form holds."""

    subtask: str
    """Id; empty: a new one."""
    title: str
    strategy: str
    nodes: tuple[str, ...]


class SubtaskForm(Vertical):
    """Title, what the Coder is told, and the graph nodes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s,ctrl+j", "save", "Save", id="form.save", priority=True),
        Binding("escape", "cancel", "Back", id="form.cancel", priority=True),
        Binding("tab", "app.focus_next", "Next field", id="form.next", show=False),
        Binding("shift+tab", "app.focus_previous", "Previous field", id="form.previous", show=False),
    ]

    @dataclass
    class Saved(Message):
        """Save was asked for."""

        before: Entry
        after: Entry

    @dataclass
    class Left(Message):
        """The form was left; its text stays for the next time."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._before = Entry("", "", "", ())
        self._kept: dict[str, Entry] = {}

    def compose(self) -> ComposeResult:
        yield Label("title", markup=False)
        yield Input(id="form-title", max_length=200, compact=True, select_on_focus=False)
        yield Label("target, constraints, done when", markup=False)
        yield TextArea(id="form-strategy", compact=True, soft_wrap=True, tab_behavior="focus")
        yield Label("graph nodes (or: host)", markup=False)
        yield Input(id="form-nodes", compact=True, select_on_focus=False)

    def open(self, subtask: Subtask | None) -> None:
        """Edit a subtask, or write a new one."""
        if subtask:
            self._before = Entry(subtask.id, subtask.title, subtask.strategy, subtask.covers)
        else:
            self._before = Entry("", "", "", ())
        shown = self._kept.pop(self._before.subtask, self._before)
        title = self.query_one("#form-title", Input)
        title.value = shown.title
        title.cursor_position = len(shown.title)  # else it stays where the last title left it
        self.query_one("#form-strategy", TextArea).load_text(shown.strategy)
        self.query_one("#form-nodes", Input).value = " ".join(shown.nodes)
        self.border_title = Content(f"edit {subtask.id}" if subtask else "new subtask")
        self.add_class("-open")
        title.focus()

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    def action_save(self) -> None:
        self.post_message(self.Saved(self._before, self._entry()))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_save()

    def action_cancel(self) -> None:
        if self._entry() != self._before:
            self._kept[self._before.subtask] = self._entry()
        self.close()
        self.post_message(self.Left())

    def close(self) -> None:
        self.remove_class("-open")

    def _entry(self) -> Entry:
        nodes = self.query_one("#form-nodes", Input).value.replace(",", " ").split()
        title = self.query_one("#form-title", Input).value.strip()
        strategy = self.query_one("#form-strategy", TextArea).text.strip()
        return Entry(self._before.subtask, title, strategy, tuple(nodes))
