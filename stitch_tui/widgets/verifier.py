"""The Verifier pane: one iteration's verdict, and what roles were shown of the documentation."""

from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import Click
from textual.widgets import Static

from stitch_tui.agents.events import Citation
from stitch_tui.agents.state import Iteration, Subtask
from stitch_tui.tools.verdict import Build
from stitch_tui.widgets import verdict_text
from stitch_tui.widgets.cited import clicked, linked
from stitch_tui.widgets.verdict_text import LABEL, section

CITATIONS = 6


class VerifierPane(VerticalScroll, can_focus=True):
    """Shows one iteration's verdict."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Down", id="verifier.down", show=False),
        Binding("k", "scroll_up", "Up", id="verifier.up", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._about: tuple[Iteration | None, Build | None, Subtask | None] = (None, None, None)
        self._cited: tuple[Citation, ...] = ()

    def compose(self) -> ComposeResult:
        yield Static(id="verdict-text", markup=False)

    def show(
        self,
        iteration: Iteration | None,
        build: Build | None,
        subtask: Subtask | None,
        cited: tuple[Citation, ...] = (),
    ) -> None:
        """Show an iteration of `subtask`, or of the program where that is None.

        Args:
            cited: what roles were shown of the documentation.
        """
        self._about, self._cited = (iteration, build, subtask), cited
        self._draw()

    def on_click(self, event: Click) -> None:
        if (chosen := clicked(event, self._cited)) is not None:
            self.post_message(chosen)

    def on_resize(self) -> None:
        """Lines depend on the width, which a pane that is not shown does not have."""
        self._draw()

    def _draw(self) -> None:
        width = max(self.scrollable_content_region.width, 20)
        lines = [*verdict_text.lines(*self._about, width), *_citations(self._cited)]
        self.query_one("#verdict-text", Static).update(Content("\n").join(lines))


def _citations(cited: tuple[Citation, ...]) -> Iterator[Content]:
    """The latest, each a line that leads to its text."""
    if not cited:
        return
    yield section("documentation")
    for number in range(max(len(cited) - CITATIONS, 0), len(cited)):
        yield linked(cited[number], number, LABEL)
