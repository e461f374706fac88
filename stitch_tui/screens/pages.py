"""What screens that explain have in common: a title, scrolling text, and Esc back to the session."""

import textwrap
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from stitch_tui.widgets.keyline import KeyLine

MARGIN = 6
"""Cells of a line beside its text: padding and scrollbar."""
GAP = 2
"""Cells between columns."""
WRAPPED = 20
"""Cells that a table's last column has at least, below which others make room for it."""


class Page(Screen[None]):
    """A page of text."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back", id="page.back"),
        Binding("y", "app.copy", "Copy", id="page.copy"),
        Binding("j", "scroll(1)", "Down", id="page.down", show=False),
        Binding("k", "scroll(-1)", "Up", id="page.up", show=False),
    ]
    PAGE = ""

    def compose(self) -> ComposeResult:
        yield Static(Content(self.PAGE), classes="page-title", markup=False)
        with VerticalScroll(classes="page"):
            yield Static(id="text", markup=False)
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        self.query_one("#text", Static).update(self.text())

    @property
    def width(self) -> int:
        """Cells that a line of text may have."""
        return max(self.app.size.width - MARGIN, WRAPPED)

    def text(self) -> Content:
        """What the page says."""
        raise NotImplementedError

    @property
    def copied(self) -> str:
        """The page's text, for the clipboard."""
        return str(self.query_one("#text", Static).content)

    def action_scroll(self, by: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)


def table(
    rows: Sequence[tuple[str, ...]],
    width: int,
    *,
    head: bool = True,
    styles: Sequence[str] = (),
    spare: Sequence[int] = (),
) -> Content:
    """Rows in columns of `width` cells together; as `laid_out`."""
    return Content("\n").join(laid_out(rows, width, head=head, styles=styles, spare=spare))


def laid_out(
    rows: Sequence[tuple[str, ...]],
    width: int,
    *,
    head: bool = True,
    styles: Sequence[str] = (),
    spare: Sequence[int] = (),
) -> list[Content]:
    """A content for each row, its last column folded where there is no room for it.

    Args:
        head: the first row is one.
        styles: of the rows below it.
        spare: columns that are left out where room is wanted, the first one first.
    """
    shown = _fitting(rows, width, spare)
    rows = [tuple(row[n] for n in shown) for row in rows]
    *widths, _ = [max(map(len, column)) for column in zip(*rows, strict=True)]
    before = sum(widths) + GAP * len(widths)
    worn = [*(["$muted bold"] if head else []), *styles]
    contents = []
    for n, (*cells, last) in enumerate(rows):
        begin = "".join(f"{cell:<{wide + GAP}}" for cell, wide in zip(cells, widths, strict=True))
        folded = f"\n{'':{before}}".join(textwrap.wrap(last, max(width - before, WRAPPED)))
        contents.append(Content.styled(f"{begin}{folded}".rstrip(), worn[n] if n < len(worn) else ""))
    return contents


def _fitting(rows: Sequence[tuple[str, ...]], width: int, spare: Sequence[int]) -> list[int]:
    """The columns that are shown."""
    *widths, last = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths.append(min(last, WRAPPED))
    shown = list(range(len(widths)))
    for column in spare:
        if sum(widths[n] + GAP for n in shown) - GAP <= width:
            break
        shown.remove(column)
    return shown


def heading(text: str) -> Content:
    return Content.styled(f"\n{text}", "$primary bold")
