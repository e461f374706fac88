"""The composer: where a person writes to the run; several lines, history, and a draft that survives."""

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea

from stitch_tui.plain_text import one_line
from stitch_tui.view.drafts import Drafts


class Field(TextArea):
    """The text itself; Enter sends, Ctrl+J begins a line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send", id="composer.send", priority=True),
        Binding("ctrl+j", "newline", "New line", id="composer.newline", priority=True),
    ]

    @dataclass
    class Sent(Message):
        """The text was sent."""

        text: str

    def action_send(self) -> None:
        if text := self.text.strip():
            self.post_message(self.Sent(text))

    def action_newline(self) -> None:
        self.insert("\n")


class Composer(Horizontal):
    """The field with the subtask that it speaks to."""

    def __init__(self, drafts: Drafts, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._drafts = drafts
        self._at = 0
        """How far back in the history; 0 is the draft."""
        self._draft = ""
        self.target = ""

    def compose(self) -> ComposeResult:
        yield Static("→", id="target", markup=False)
        field = Field(
            self._drafts.draft,
            id="field",
            show_line_numbers=False,
            soft_wrap=True,
            compact=True,
            highlight_cursor_line=False,
            placeholder="redirect the Coder, or / for commands",
        )
        field.move_cursor(field.document.end)
        yield field

    @property
    def field(self) -> Field:
        return self.query_one("#field", Field)

    def aim(self, subtask: str, words: str) -> None:
        """Speak to this subtask from now on; `words` name it."""
        self.target = subtask
        self.query_one("#target", Static).update(Content(f"→ {one_line(words)}: " if words else "→ "))

    def taken(self, text: str) -> None:
        """The text was understood: it goes into the history and the field is empty again."""
        self._drafts.remember(text)
        self._at = 0
        self.field.load_text("")

    def put(self, text: str) -> None:
        """Begin with `text` unless a draft stands there, and take the focus."""
        if not self.field.text.strip():
            self.field.load_text(text)
            self.field.move_cursor(self.field.document.end)
        self.screen.set_focus(self.field)  # at once: what is typed next belongs here

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        lines = min(max(self.field.wrapped_document.height, 1), 6)
        self.field.styles.height = lines
        if self._at == 0:
            self._drafts.draft = self.field.text

    def on_key(self, event: events.Key) -> None:
        """Up on the first line and down on the last one walk through the history."""
        row, _ = self.field.cursor_location
        if event.key == "up" and row == 0:
            self._walk(1, event)
        elif event.key == "down" and row == self.field.document.line_count - 1:
            self._walk(-1, event)

    def _walk(self, step: int, event: events.Key) -> None:
        history = self._drafts.history
        wanted = self._at + step
        if not 0 <= wanted <= len(history):
            return
        event.prevent_default()
        event.stop()
        if self._at == 0:
            self._draft = self.field.text
        self._at = wanted
        self.field.load_text(self._draft if wanted == 0 else history[-wanted])
        self.field.move_cursor(self.field.document.end)
