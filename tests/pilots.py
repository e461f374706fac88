"""Waiting for an app of ours to have done what it was asked for."""

from contextlib import suppress

from textual.app import App
from textual.pilot import Pilot
from textual.worker import WorkerCancelled

from stitch_tui.app import StitchApp


async def finished(app: App[None], *groups: str) -> None:
    """Wait for the app's workers of these groups; one that another takes the place of has ended, too."""
    if working := [worker for worker in app.workers if worker.group in groups]:
        with suppress(WorkerCancelled):
            await app.workers.wait_for_complete(working)


async def fed(pilot: Pilot[None]) -> None:
    """Wait until the session's screen is there and has read what its feed has."""
    while not pilot.app.screen.is_mounted:
        await pilot.pause()
    await finished(pilot.app, "feed")


async def pressed(pilot: Pilot[None], *keys: str) -> None:
    """Press keys and wait until each has come to its end."""
    app = pilot.app
    assert isinstance(app, StitchApp)
    await pilot.press(*keys)
    await pilot.pause()
    while app._held:
        await pilot.pause()
