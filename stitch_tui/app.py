"""The session of a running engine in three panes: plan, code, verdict; leaving it leaves the run alone."""

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Footer, Header, Log, Static

from stitch_tui.agents import events
from stitch_tui.agents.events import Event
from stitch_tui.agents.presence import Engine
from stitch_tui.agents.state import Session
from stitch_tui.headless import describe
from stitch_tui.plain_text import printable
from stitch_tui.session import connected
from stitch_tui.tools.errors import StitchError


def watch(engine: Engine) -> None:
    """Show the session until the viewer leaves."""
    SessionApp(engine).run()


class SessionApp(App[None]):
    """Draws what the engine sends; its state is the fold of those events."""

    CSS = "#plan { width: 1fr; } #code { width: 2fr; } #verdict { width: 1fr; } Log, Static { padding: 0 1; }"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+q", "quit", "Detach", priority=True, tooltip="Leave; the run goes on."),
    ]

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine, self._session = engine, Session()

    def compose(self) -> ComposeResult:
        yield Header()
        with Horizontal():
            yield Static(id="plan")
            yield Log(id="code")
            yield Log(id="verdict")
        yield Footer()

    def on_mount(self) -> None:
        self.title = f"stitch {self._engine.session}"
        self.run_worker(self._follow(), exit_on_error=True)

    async def _follow(self) -> None:
        try:
            async with connected(self._engine) as connection:
                async for event in connection.stream():
                    self._show(event)
        except StitchError as error:
            self.sub_title = printable(str(error))

    def _show(self, event: Event) -> None:
        self._session = event.applied_to(self._session)
        self.query_one("#plan", Static).update(Content(self._plan()))
        if isinstance(event, events.CodeWritten):
            self._code.clear()
            self._code.write(printable(event.candidate.source))
        elif isinstance(event, events.CoderDelta):
            self._code.write(printable(event.text))
        elif isinstance(event, events.VerdictReached):
            self._verdict.write_line(printable(f"{event.subtask or 'program'}: {describe(event.verdict)}"))
        elif isinstance(event, events.SessionFinished):
            self.sub_title = printable(f"{event.status}: {event.reason}")

    def _plan(self) -> str:
        rows = (f"{s.id} {s.state:9} {s.title}" for s in self._session.subtasks)
        return printable("\n".join(rows) or "no plan yet")

    @property
    def _code(self) -> Log:
        return self.query_one("#code", Log)

    @property
    def _verdict(self) -> Log:
        return self.query_one("#verdict", Log)
