"""The row of pane names where there is room for one pane only."""

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

PANES = ("planner", "coder", "verifier")


class PaneTabs(Horizontal):
    """Shows which pane is shown; a click shows another."""

    DEFAULT_CSS = """
    PaneTabs Static { width: auto; padding: 0 1; color: $muted; }
    PaneTabs Static.-shown { color: $primary; text-style: bold reverse; }
    """

    class Clicked(Message):
        """A pane was asked for."""

        def __init__(self, pane: str) -> None:
            super().__init__()
            self.pane = pane

    def compose(self) -> ComposeResult:
        for number, pane in enumerate(PANES, 1):
            yield _Tab(Content(f"{number} {pane.title()}"), pane)

    def show(self, pane: str) -> None:
        for tab in self.query(_Tab):
            tab.set_class(tab.pane == pane, "-shown")


class _Tab(Static):
    def __init__(self, label: Content, pane: str) -> None:
        super().__init__(label, markup=False)
        self.pane = pane

    def on_click(self) -> None:
        self.post_message(PaneTabs.Clicked(self.pane))
