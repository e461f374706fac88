"""The start screen: sessions to go on with, references to begin with, and what this machine has."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from stitch_tui import session
from stitch_tui.agents import journal, presence
from stitch_tui.agents.state import Status
from stitch_tui.config import load
from stitch_tui.link import EngineFeed, Feed, JournalFeed
from stitch_tui.plain_text import one_line, printable
from stitch_tui.screens.session import SessionScreen
from stitch_tui.screens.start_text import facts, heading, session_row
from stitch_tui.session import Known
from stitch_tui.tools.errors import StitchError
from stitch_tui.view.board import Board
from stitch_tui.view.drafts import Drafts
from stitch_tui.widgets.keyline import KeyLine

if TYPE_CHECKING:
    from stitch_tui.agents.engine import Request

SESSIONS = 30
"""Latest sessions that are listed."""
LOOKS_S = 2.0
"""Between two looks at whether an engine has begun or ended."""


class StartScreen(Screen[None]):
    """What bare ``stitch`` shows; a session that is chosen is shown on top of it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "go_on", "Go on", id="start.go-on", tooltip="Take up the session where it was left."),
        Binding("v", "look", "Look", id="start.look", tooltip="Show the session as it was."),
        Binding("o", "other", "Other file", id="start.other", tooltip="Name a reference yourself."),
        Binding("h", "app.history", "History", id="start.history", tooltip="Iterations in git."),
        Binding("t", "app.themes", "Themes", id="start.themes"),
        Binding("escape", "back", "Back", id="start.back", show=False),
    ]

    def __init__(self, project: Path) -> None:
        super().__init__()
        self._project = project
        self._known: dict[str, Known] = {}
        self._references: list[str] = []
        self._engine: presence.Engine | None = None
        self._opening = False

    def compose(self) -> ComposeResult:
        where = one_line(str(self._project))
        yield Static(
            Content.assemble(
                (" stitch ", "$button-color-foreground on $primary bold"), (f" {where}", "$muted")
            ),
            id="banner",
            markup=False,
        )
        with Horizontal(id="start"):
            with Vertical(id="choices", classes="pane"):
                yield OptionList(id="choice", markup=False)
                yield Input(
                    id="other", placeholder="model.py, model.py:Class or package.module:Class", compact=True
                )
            with VerticalScroll(id="machine", classes="pane", can_focus=False):
                yield Static(Content.styled("looking …", "$muted"), id="checks", markup=False)
        yield Static(id="doing", markup=False)
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one("#choices").border_title = Content("Begin or go on")
        self.query_one("#choices").border_subtitle = Content("Enter opens")
        self.query_one("#machine").border_title = Content("This machine")
        self._list.focus()
        self.call_after_refresh(self.examine)
        self.set_interval(LOOKS_S, self.look_around)

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self.look_around)

    @property
    def parting(self) -> str | None:
        """What to say on the terminal once the screen is left."""
        if not self._opening:
            return None
        return "the session begins all the same: `stitch` shows it, `stitch stop` ends it"

    @property
    def _list(self) -> OptionList:
        return self.query_one("#choice", OptionList)

    # what there is ---------------------------------------------------------------------------------

    @work(group="look", exclusive=True)
    async def look_around(self) -> None:
        """List the sessions and references of the project, and what runs."""
        if not self.is_current:
            return
        try:
            found = await asyncio.to_thread(self._found)
        except StitchError as error:
            self._say(str(error), bad=True)
            return
        if found != (self._engine, self._known, self._references) or not self._list.option_count:
            self._engine, self._known, self._references = found
            self._fill()

    def _found(self) -> tuple[presence.Engine | None, dict[str, Known], list[str]]:
        known = {found.name: found for found in session.known(self._project, SESSIONS)}
        references = self._references or self._all_references()
        return presence.running(self._project), known, references

    def _all_references(self) -> list[str]:
        """The one of the settings, then those that look like one."""
        from stitch_tui import project_init

        chosen = load(self._project, refuse=False).settings.reference.path
        return [
            *([chosen] if chosen else []),
            *(r for r in project_init.references(self._project) if r != chosen),
        ]

    def _fill(self) -> None:
        chosen = self._chosen
        options: list[Option | None] = [*self._session_options()]
        if self._known:
            options.append(None)
        options += self._reference_options()
        self._list.set_options(options)
        ids = [option.id for option in self._list.options]
        self._list.highlighted = ids.index(chosen) if chosen in ids else self._first()
        self.refresh_bindings()
        if self._engine and not self._engine.session and not self._opening:
            self._say(f"an engine (pid {self._engine.pid}) is opening the reference")

    def _session_options(self) -> Iterator[Option]:
        if self._known:
            yield Option(heading("Sessions"), disabled=True)
        running = self._engine.session if self._engine else ""
        for known in self._known.values():
            yield Option(session_row(known, known.name == running), id=f"session {known.name}")

    def _reference_options(self) -> Iterator[Option]:
        yield Option(heading("Begin with"), disabled=True)
        for path in self._references:
            yield Option(Content.assemble(("▸ ", "$accent bold"), one_line(path)), id=f"begin {path}")
        text = "another file …" if self._references else "no reference found here: name one …"
        yield Option(Content.assemble(("▸ ", "$accent bold"), (text, "$muted")), id="other")

    def _first(self) -> int:
        """The first row that can be chosen."""
        return next((n for n, option in enumerate(self._list.options) if not option.disabled), 0)

    @work(group="doctor")
    async def examine(self) -> None:
        """What ``stitch doctor`` says of this machine."""
        from stitch_tui.tools.doctor import examine

        settings = load(self._project, refuse=False).settings
        device = settings.device
        report = await examine(self._project, device.kind, device.index, settings.reference.python)
        self.query_one("#checks", Static).update(Content("\n").join(facts(report)))

    # choosing --------------------------------------------------------------------------------------

    @property
    def _chosen(self) -> str:
        option = self._list.highlighted_option
        return option.id or "" if option else ""

    @property
    def _chosen_session(self) -> Known | None:
        kind, _, name = self._chosen.partition(" ")
        return self._known.get(name) if kind == "session" else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if not self.is_mounted:
            return True
        if action == "look":
            return self._chosen_session is not None
        if action == "go_on":
            return self._can_go_on(self._chosen_session)
        return True

    def _can_go_on(self, known: Known | None) -> bool:
        """One engine runs in a project at a time."""
        met = known is not None and known.ended is not None and known.ended.status is Status.GOAL_MET
        return known is not None and self._engine is None and not met

    def on_option_list_option_highlighted(self) -> None:
        self.refresh_bindings()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        kind, _, name = (event.option_id or "").partition(" ")
        if kind == "other":
            self.action_other()
        elif kind == "begin":
            self.begin(name)
        elif self._engine and self._engine.session == name:
            self._join(self._engine)
        else:
            self.action_look()

    def action_other(self) -> None:
        self.query_one("#other", Input).add_class("-open").focus()

    def action_back(self) -> None:
        self.query_one("#other", Input).remove_class("-open")
        self._list.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self.begin(event.value.strip())

    def action_look(self) -> None:
        if known := self._chosen_session:
            self._show(JournalFeed(journal.path_of(self._project, known.name)), Drafts(None))

    def action_go_on(self) -> None:
        if known := self._chosen_session:
            self._start(f"taking up {known.name}", resume=known.name)

    def begin(self, reference: str) -> None:
        """Start a session on a reference and show it."""
        self._start(f"opening {reference}: importing it and running it once", reference=reference)

    def _start(self, doing: str, *, reference: str = "", resume: str | None = None) -> None:
        from stitch_tui.agents.engine import Request

        if self._opening:
            return
        try:
            settings = load(self._project).settings
        except StitchError as error:
            self._say(str(error), bad=True)
            return
        self._opening = True
        self._say(f"{doing} …")
        self.start_engine(Request(self._project, settings, reference=reference, resume=resume))

    @work(group="start")
    async def start_engine(self, request: "Request") -> None:
        """Start an engine that goes on without this terminal, and show its session."""
        from stitch_tui.agents.detached import start

        try:
            await _apart(partial(start, request))
            self._say("")
            self._join(session.found(self._project))
        except StitchError as error:
            self._say(str(error), bad=True)
        finally:
            self._opening = False

    def _join(self, engine: presence.Engine) -> None:
        drafts = journal.path_of(self._project, engine.session).with_name("composer.json")
        self._show(EngineFeed(engine, self._project), Drafts(drafts))

    def _show(self, feed: Feed, drafts: Drafts) -> None:
        self.app.push_screen(SessionScreen(Board(), feed, self._project, drafts))

    def _say(self, text: str, *, bad: bool = False) -> None:
        glyph, style = ("✗", "$gate-fail") if bad else ("●", "$accent bold")
        said = Content.styled(f"{glyph} {printable(text)}", style) if text else Content("")
        self.query_one("#doing", Static).update(said)


def _apart(work: Callable[[], object]) -> "asyncio.Future[object]":
    """Do `work` in a thread that nobody waits for when the app is left."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()

    def settle(done: Callable[[], None]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: None if future.done() else done())

    def run() -> None:
        try:
            result = work()
        except Exception as error:
            fault = error
            settle(lambda: future.set_exception(fault))
        else:
            settle(lambda: future.set_result(result))

    threading.Thread(target=run, daemon=True).start()
    return future
