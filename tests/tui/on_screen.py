"""An app on a made-up session, for tests."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from pilots import finished, pressed
from shown_sessions import FakeEngine, in_progress
from textual.pilot import Pilot
from textual.widgets import Static

from stitch_tui.agents.events import Event
from stitch_tui.agents.settings import Settings, UiSettings
from stitch_tui.app import StitchApp
from stitch_tui.screens.session import SessionScreen
from stitch_tui.view.board import Board
from stitch_tui.view.drafts import Drafts
from stitch_tui.widgets import planner


@dataclass
class Shown:
    """What a test looks at."""

    app: StitchApp
    pilot: Pilot[None]
    engine: FakeEngine

    @property
    def screen(self) -> SessionScreen:
        assert isinstance(self.app.screen, SessionScreen)
        return self.app.screen

    @property
    def screen_below(self) -> SessionScreen:
        """The session screen, whatever lies on it."""
        below = self.app.screen_stack[0]
        assert isinstance(below, SessionScreen)
        return below

    async def press(self, *keys: str) -> None:
        await pressed(self.pilot, *keys)
        await finished(self.app, "orders")
        self.screen_below.draw()
        await self.pilot.pause()

    async def drawn(self) -> None:
        """Wait for the next picture of the board."""
        self.screen_below.draw()
        await self.pilot.pause()
        self.screen_below.draw()
        await self.pilot.pause()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds; for what follows by itself after a key's own work is done."""
        async with asyncio.timeout(30):
            while not holds():
                await self.pilot.pause()

    def text(self, selector: str) -> str:
        return str(self.app.screen.query_one(selector, Static).content)

    @property
    def notices(self) -> str:
        """What was said in passing."""
        return "\n".join(notice.message for notice in self.app._notifications)

    @property
    def picture(self) -> str:
        """Everything on the terminal, as text."""
        rows = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text for strip in rows)


@asynccontextmanager
async def shown(
    events: Iterable[Event] | None = None,
    size: tuple[int, int] = (150, 44),
    *,
    theme: str = "stitch-night",
    keymap: dict[str, str] | None = None,
    drafts: Path | None = None,
) -> AsyncIterator[Shown]:
    engine = FakeEngine(in_progress() if events is None else events)
    settings = Settings(ui=UiSettings(theme=theme, keymap=keymap or {}))
    app = StitchApp(SessionScreen(Board(), engine, Path.cwd(), Drafts(drafts)), Path.cwd(), settings)
    async with app.run_test(size=size) as pilot:
        made = Shown(app, pilot, engine)
        await finished(app, "feed")
        await made.drawn()
        yield made


def long_ago(screen: SessionScreen) -> None:
    """Let the proposals have been on screen for a while."""
    since = screen.planner._since
    for id in since:
        since[id] = monotonic() - 2 * planner.SETTLED_S
