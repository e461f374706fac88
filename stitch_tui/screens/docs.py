"""Documentation: search what is indexed on this machine, and read what roles were shown, at its place."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, OptionList, Static

from stitch_tui.agents.documentation import is_other_version
from stitch_tui.agents.events import Citation
from stitch_tui.plain_text import one_line, printable
from stitch_tui.tools.docs.client import DocsWorker, Embedding, Passage, is_indexed
from stitch_tui.tools.errors import StitchError
from stitch_tui.widgets.keyline import KeyLine

SHOWN = 20
"""Passages that a search lists."""
FIRST_USE = "nothing is indexed yet: run `stitch docs build`"
OTHER_VERSION = "not the compiler's version"


@dataclass(frozen=True)
class Shown:
    """What roles of a session were shown, and the compiler that it is for."""

    citations: Sequence[Citation] = ()
    compiler: str = ""


class DocsScreen(Screen[None]):
    """A query, its passages, and the text of one; before the first, what the session's roles were shown.

    Args:
        first: the citation to open with.
        query: what to search for at once.
        embedding: what makes vectors of queries; the worker is this screen's own.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", id="docs.back"),
        Binding("slash", "query", "Search", key_display="/", id="docs.query", tooltip="Search for words."),
        Binding("tab", "switch", "Switch", id="docs.switch", show=False),
        Binding("y", "app.copy", "Copy", id="docs.copy", tooltip="Copy the text."),
        Binding("j", "scroll(1)", "Down", id="docs.down", show=False),
        Binding("k", "scroll(-1)", "Up", id="docs.up", show=False),
    ]

    def __init__(
        self,
        shown: Shown,
        *,
        first: Citation | None = None,
        query: str = "",
        embedding: "Embedding | Literal['offline'] | None" = None,
    ) -> None:
        super().__init__()
        self._shown, self._first, self._query = shown, first, query
        self._worker = DocsWorker(embedding)
        self._rows: Sequence[Citation | Passage] = ()
        self._text = ""

    def compose(self) -> ComposeResult:
        yield Static(Content(" Documentation"), id="title", classes="page-title", markup=False)
        yield Input(placeholder="words, or a name such as cublasLtMatmul", id="query", compact=True)
        with Horizontal(id="body"):
            with Vertical(id="list", classes="pane"):
                yield OptionList(id="passages", markup=False)
            with VerticalScroll(id="passage", classes="pane"):
                yield Static(id="passage-text", markup=False)
        yield KeyLine()

    def on_mount(self) -> None:
        if self._query:
            self.query_one("#query", Input).value = self._query
            self.search(self._query)
            return
        chosen = self._shown.citations.index(self._first) if self._first in self._shown.citations else 0
        self._list(self._shown.citations, "shown to this session's roles", chosen)
        if self._shown.citations:
            self._options.focus()
        else:
            self._say("" if is_indexed() else FIRST_USE)
            self.query_one("#query", Input).focus()

    async def on_unmount(self) -> None:
        self.workers.cancel_group(self, "docs")
        await self._worker.close()

    @property
    def _options(self) -> OptionList:
        return self.query_one("#passages", OptionList)

    @property
    def copied(self) -> str:
        """The text that is shown."""
        return self._text

    # what is shown -------------------------------------------------------------------------------

    def _list(self, rows: Sequence[Citation | Passage], title: str, chosen: int = 0) -> None:
        self._rows = rows
        self.query_one("#list").border_title = Content(title)
        self._options.clear_options()
        self._options.add_options([self._row(row) for row in rows])
        if rows:
            self._options.highlighted = chosen

    def _row(self, row: Citation | Passage) -> Content:
        about = " ".join(filter(None, (row.library, row.version)))
        other = f"  ⚠ {OTHER_VERSION}" if self._is_other_version(row) else ""
        return Content.assemble(one_line(row.name), (f"  {one_line(about)}", "$muted"), (other, "$waiting"))

    def _is_other_version(self, row: Citation | Passage) -> bool:
        if isinstance(row, Citation):
            return row.is_other_version
        return is_other_version(row, self._shown.compiler)

    def _say(self, text: str) -> None:
        self._text = ""
        self.query_one("#passage-text", Static).update(Content.styled(printable(text), "$muted"))

    def _show(self, passage: Passage, is_other: bool) -> None:
        """The whole text of a passage, below where it is from."""
        about = " ".join(filter(None, (passage.library, passage.version)))
        self._text = passage.text
        parts = [
            Content.styled(one_line(f"{passage.name}  ({about})"), "bold"),
            Content.styled(one_line(passage.place), "$primary"),
            Content.styled(one_line(passage.licence), "$muted"),
        ]
        if is_other:
            parts.append(Content.styled(f"⚠ {OTHER_VERSION}", "$waiting"))
        parts.append(Content(f"\n{printable(passage.text)}"))
        self.query_one("#passage-text", Static).update(Content("\n").join(parts))
        self.query_one("#passage").scroll_home(animate=False)

    # asking --------------------------------------------------------------------------------------

    @work(group="docs", exclusive=True)
    async def search(self, query: str) -> None:
        """List the passages that answer a query."""
        self._say("searching …")
        try:
            found = await self._worker.search(query, limit=SHOWN, on_event=self._heard)
        except StitchError as fault:
            self._list((), "passages")
            self._say(str(fault))
            return
        self._list(found, "passages")
        if found:
            self._options.focus()
        else:
            self._say("nothing was found")

    def _heard(self, event: str, data: dict[str, object]) -> None:
        if event == "warning":
            self.notify(str(data["text"]), severity="warning", markup=False)

    @work(group="docs", exclusive=True)
    async def open_citation(self, citation: Citation) -> None:
        """Show the text that a citation is of."""
        try:
            passage = await self._worker.at(citation.place)
        except StitchError as fault:
            self._say(str(fault))
            return
        if passage is None:
            self._say(f"{citation.place}\n\nThe index no longer has it: the file has changed or gone since.")
        else:
            self._show(passage, citation.is_other_version)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if query := event.value.strip():
            self.search(query)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        row = self._rows[event.option_index]
        if isinstance(row, Citation):
            self.open_citation(row)
        else:
            self._show(row, self._is_other_version(row))

    # keys ----------------------------------------------------------------------------------------

    def action_back(self) -> None:
        self.app.pop_screen()

    def action_query(self) -> None:
        self.query_one("#query", Input).focus()

    def action_switch(self) -> None:
        """Query, list, text, and round again."""
        stops = [self.query_one("#query"), self._options, self.query_one("#passage")]
        at = next((n for n, stop in enumerate(stops) if stop.has_focus), 0)
        stops[(at + 1) % len(stops)].focus()

    def action_scroll(self, by: int) -> None:
        self.query_one("#passage").scroll_relative(y=by, animate=False)
