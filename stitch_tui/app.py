"""The Textual app: themes, keymap, palette, clipboard, and which screen it begins with."""

import os
from pathlib import Path
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.screen import Screen

from stitch_tui import garbage, theming
from stitch_tui.agents import journal
from stitch_tui.agents.events import Citation
from stitch_tui.agents.presence import Engine
from stitch_tui.agents.settings import Settings
from stitch_tui.link import EngineFeed, Feed
from stitch_tui.plain_text import count
from stitch_tui.screens.palette import Orders
from stitch_tui.screens.session import SessionScreen
from stitch_tui.terminal import TerminalApp
from stitch_tui.tools.errors import StitchError
from stitch_tui.view.board import Board
from stitch_tui.view.drafts import Drafts
from stitch_tui.widgets.cited import Cited
from stitch_tui.widgets.composer import Field

_LEAVE = "Leave; asks what becomes of the run."
_HELP = "Keys and commands for where you are."
_SUSPEND = "To the shell; `fg` comes back."


def watch(engine: Engine, project: Path, settings: Settings) -> int:
    """Show a running session until the viewer leaves; the process's exit code."""
    drafts = Drafts(journal.path_of(project, engine.session).with_name("composer.json"))
    return show(EngineFeed(engine, project), project, settings, drafts)


def show(feed: Feed, project: Path, settings: Settings, drafts: Drafts) -> int:
    """Show a session until the viewer leaves; the process's exit code."""
    return _run(StitchApp(SessionScreen(Board(), feed, project, drafts), project, settings))


def start(project: Path, settings: Settings) -> int:
    """Show the start screen, and the session that is chosen there; the process's exit code."""
    from stitch_tui.screens.start import StartScreen

    return _run(StitchApp(StartScreen(project), project, settings))


def _run(app: "StitchApp") -> int:
    garbage.settle()
    app.run()
    if app._exception:
        raise app._exception
    return app.return_code or 0


class StitchApp(TerminalApp):
    """stitch on a terminal.

    Args:
        first: the screen to begin with; leaving it ends the app.
    """

    CSS_PATH = "styles/app.tcss"
    TITLE = "stitch"
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-narrow"),
        (100, "-medium"),
        (140, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (32, "-tall")]  # noqa: RUF012
    COMMANDS = {Orders}  # noqa: RUF012  # as Textual declares it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "leave", "Leave", id="app.leave", priority=True, tooltip=_LEAVE),
        Binding(
            "f2,ctrl+p", "command_palette", "Palette", id="app.palette", tooltip="Find an action.", show=False
        ),
        Binding("question_mark", "help", "Help", id="app.help", key_display="?", tooltip=_HELP),
        Binding(
            "f1",
            "help",
            "Help",
            id="app.help-everywhere",
            tooltip="The same, in the composer too.",
            show=False,
        ),
        Binding("ctrl+z", "suspend_process", id="app.suspend", tooltip=_SUSPEND, show=False),
    ]

    def __init__(self, first: Screen[None], project: Path, settings: Settings) -> None:
        super().__init__()
        self._first, self._project = first, project
        self._settings, self._git = settings.ui, settings.git
        self._embedding = settings.models.embedding
        self._faults = theming.register(self)
        self._told = (0, False)
        self._begin_in(self._settings.theme)

    @property
    def session(self) -> SessionScreen | None:
        """The screen of the session that is shown, whatever lies on it."""
        return next((screen for screen in self.screen_stack if isinstance(screen, SessionScreen)), None)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return theming.defaults()

    def get_default_screen(self) -> Screen[None]:
        return self._first

    def on_mount(self) -> None:
        if self.theme != self._settings.theme:
            self._miss_theme(self._settings.theme)
        self.set_keymap(self._settings.keymap)
        for fault in self._faults:
            self.notify(fault, title="theme", severity="warning", markup=False)
        self.run_worker(self._watch_themes(), exit_on_error=False)
        self.set_interval(0.5, self._tell_outside)

    def use_theme(self, name: str) -> None:
        """Take a theme; one that is not there is replaced by the default, and that is said."""
        if name in self.available_themes:
            self.theme = name
            return
        self.theme = theming.DEFAULT
        self._miss_theme(name)

    def _miss_theme(self, name: str) -> None:
        self.notify(f"no theme {name}; see `stitch themes`", severity="warning", markup=False)

    def _begin_in(self, theme: str) -> None:
        """Take a theme before any style is parsed: one that comes later has all of them parsed again."""
        self.set_reactive(App.theme, theme if theme in self.available_themes else theming.DEFAULT)
        self.stylesheet.set_variables(self.get_css_variables())
        self._refresh_truecolor_filter(self.ansi_theme)

    async def _watch_themes(self) -> None:
        async for _ in theming.changes():
            for fault in theming.register(self):
                self.notify(fault, title="theme", severity="warning", markup=False)
            self._invalidate_css()
            self.refresh_css(animate=False)

    def _fatal_error(self) -> None:
        """End without Textual's picture of every variable: the command line reports what happened."""
        self._close_messages_no_wait()

    def _tell_outside(self) -> None:
        """Title of the terminal, and a bell when something waits and nobody looks."""
        if (session := self.session) is None:
            return
        waiting, ended = len(session.board.proposed), session.board.finished is not None
        if (waiting, ended) == self._told:
            return
        news = waiting > self._told[0] or (ended and not self._told[1])
        self._told = waiting, ended
        if news and not self.app_focus and self._settings.notifications == "unfocused":
            self.bell()
        sign = "?" if waiting else "■" if ended else "●"
        self.set_title(f"{sign} stitch {session.board.session.id}")

    # actions ---------------------------------------------------------------------------------------

    def action_leave(self) -> None:
        """Go back to the screen below, or end; a session asks first what becomes of its run."""
        screen = self.screen
        if isinstance(screen, SessionScreen) and screen.asks_before_leaving():
            return
        if len(self.screen_stack) > 1:
            self.pop_screen()
        else:
            self.exit(message=getattr(screen, "parting", None))

    def on_key(self, event: Key) -> None:
        """A key that was on its way to a pane when the composer took the focus belongs to the composer."""
        field = self.focused
        if not isinstance(field, Field):
            return
        if event.key == "enter":
            event.prevent_default()
            field.action_send()
        elif event.character and event.is_printable:
            event.prevent_default()
            field.insert(event.character)

    def action_help_quit(self) -> None:
        """Ctrl+C copies a selection; without one it is Esc, and never quits."""
        self.simulate_key("escape")

    def action_help(self) -> None:
        from stitch_tui.screens.help import HelpScreen

        self._open(HelpScreen(self.screen))

    def action_themes(self, name: str = "") -> None:
        if name:
            self.use_theme(name)
            return
        from stitch_tui.screens.theme_preview import ThemeScreen

        self._open(ThemeScreen())

    def action_history(self) -> None:
        from stitch_tui.screens.history import HistoryScreen
        from stitch_tui.tools.history import History

        try:
            history = History.open(self._project, prefix=self._git.branch_prefix, author=self._git.author)
        except StitchError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        session = self.session
        restore = session.go_on_from if session and session.steerable else None
        self._open(HistoryScreen(history, session.board.session.id if session else "", restore))

    def action_docs(self, query: str = "") -> None:
        self._open_docs(query=query)

    def on_cited(self, event: Cited) -> None:
        self._open_docs(first=event.citation)

    def _open_docs(self, *, query: str = "", first: Citation | None = None) -> None:
        from stitch_tui.agents.embedding import embedding_of
        from stitch_tui.screens.docs import DocsScreen, Shown

        try:
            embedding = embedding_of(self._embedding)
        except StitchError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        board = self.session.board if self.session else Board()
        citations = tuple(dict.fromkeys(cited for each in board.cited.values() for cited in each))
        shown = Shown(citations, board.session.compiler)
        self._open(DocsScreen(shown, first=first, query=query, embedding=embedding))

    def _open(self, screen: Screen[None]) -> None:
        """Show a screen, once."""
        if type(self.screen) is not type(screen):
            self.push_screen(screen)

    def action_copy(self) -> None:
        if text := getattr(self.screen, "copied", ""):
            self.copy(text)

    def copy(self, text: str) -> None:
        """Copy, and say how."""
        from stitch_tui import clipboard

        tool = clipboard.tool()
        if tool and clipboard.run_tool(tool, text):
            how = f"with {tool[0]}"
        elif self._driver and len(text) <= clipboard.OSC_BYTES and not self.is_headless:
            self._driver.write(clipboard.sequence(text, tmux="TMUX" in os.environ))
            how = "through the terminal (OSC 52)"
        else:
            how = f"to {clipboard.save(text)}"
        self.notify(f"copied {count(len(text.splitlines()), 'line')} {how}", timeout=3, markup=False)
