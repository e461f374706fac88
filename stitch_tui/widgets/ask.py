"""A question in one line above the composer: it takes the focus, answers with one key, and blocks nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult
from textual.content import Content, Span
from textual.style import Style
from textual.widget import Widget
from textual.widgets import Static

from stitch_tui.plain_text import printable


@dataclass(frozen=True)
class Choice:
    """One answer."""

    key: str
    text: str
    do: Callable[[], object]


NO = Choice("esc", "back", lambda: None)


def _label(choice: Choice) -> Content:
    label = Content.assemble((f" {choice.key} ", "$background on $waiting bold"), f" {choice.text} ")
    return Content(label.plain, [*label.spans, Span(0, len(label), Style.from_meta({"choice": choice.key}))])


class AskBar(Widget, can_focus=True):
    """Hidden until something is asked; Esc is always "no"."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._choices: Sequence[Choice] = ()
        self._before: Widget | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="question", markup=False)
        yield Static(id="answers", markup=False)

    @property
    def asking(self) -> bool:
        return bool(self._choices)

    def ask(self, question: str, *choices: Choice) -> None:
        """Ask; the focus comes here and goes back where it was."""
        if not self.asking:
            self._before = self.screen.focused
        self._choices = choices
        self.query_one("#question", Static).update(Content(printable(question)))
        self.query_one("#answers", Static).update(Content("  ").join(map(_label, (*choices, NO))))
        self.add_class("-asking")
        self.focus()

    def answer(self, choice: Choice) -> None:
        """Take an answer."""
        self._choices = ()
        self.remove_class("-asking")
        before, self._before = self._before, None
        if before and before.is_attached and before.focusable:
            before.focus()
        else:
            self.screen.focus_next()
        choice.do()

    def on_click(self, event: events.Click) -> None:
        wanted = event.style.meta.get("choice")
        for choice in (*self._choices, NO):
            if self.asking and choice.key == wanted:
                self.answer(choice)

    def on_key(self, event: events.Key) -> None:
        """Answer keys only; other characters are kept from the panes while a question stands."""
        if not self.asking:
            return
        chosen = next((c for c in self._choices if c.key == event.character), None)
        if chosen is None and event.key == "escape":
            chosen = NO
        if chosen or event.is_printable:
            event.stop()
            event.prevent_default()
        if chosen:
            self.answer(chosen)
