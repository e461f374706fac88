"""What screens that explain have in common: a title, scrolling text, and Esc back to the session."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from stitch_tui.widgets.keyline import KeyLine


class Page(Screen[None]):
    """A page of text."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back", id="page.back"),
        Binding("y", "app.copy", "Copy", id="page.copy"),
        Binding("j", "scroll(1)", "Down", show=False),
        Binding("k", "scroll(-1)", "Up", show=False),
    ]
    PAGE = ""

    def compose(self) -> ComposeResult:
        yield Static(Content(self.PAGE), classes="page-title", markup=False)
        with VerticalScroll(classes="page"):
            yield Static(id="text", markup=False)
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one("#text", Static).update(self.text())
        self.query_one(VerticalScroll).focus()

    def text(self) -> Content:
        """What the page says."""
        raise NotImplementedError

    @property
    def copied(self) -> str:
        """The page's text, for the clipboard."""
        return str(self.query_one("#text", Static).content)

    def action_scroll(self, by: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)


def table(rows: Sequence[tuple[str, ...]], head: bool = True, styles: Sequence[str] = ()) -> Content:
    """Rows in columns; the first one is a head.  `styles` are those of the rows below it."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    worn = [*(["$muted bold"] if head else []), *styles]
    lines = []
    for n, row in enumerate(rows):
        text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        lines.append(Content.styled(text, worn[n] if n < len(worn) else ""))
    return Content("\n").join(lines)


def heading(text: str) -> Content:
    return Content.styled(f"\n{text}", "$primary bold")
