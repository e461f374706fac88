"""Code that a human writes during a run: a subtask's file in the session's folder, changed in any editor.

The human wins: a step on that subtask ends now, the generation changes, and what was written is judged
as an iteration of kind *human* before the work goes on.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from stitch_tui.agents import events
from stitch_tui.agents.gates import Gates, Redirected
from stitch_tui.agents.plan_by_hand import PlanByHand
from stitch_tui.agents.record import Record
from stitch_tui.agents.workspace import Workspace

QUIET_MS = 100
"""A file that is being saved has settled after this time."""
LOOKS_MS = 1000
"""Files are looked at this often all the same: not every file system tells of changes."""


class Hand:
    """Compares the session's files with what the engine wrote: an edit is what differs, however it came."""

    def __init__(self, record: Record, gates: Gates, workspace: Workspace, plan: PlanByHand) -> None:
        self._record, self._gates, self._workspace, self._plan = record, gates, workspace, plan
        self._taken: dict[str, str] = {}

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Notice edits as long as the context lasts, and those that were made while no engine ran."""
        self.look(now=True)
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    def look(self, *, now: bool) -> None:
        """Take what a human wrote since the last look; what was judged before is not judged again.

        Args:
            now: cancel a step on that subtask; otherwise it ends at its next check.
        """
        for subtask in self._record.session.subtasks:
            text = self._workspace.edited(self._record.session, subtask)
            if text and text != self._taken.get(subtask.id):
                self._take(subtask.id, text, now=now)
        self._plan.look(now=now)

    def _take(self, subtask: str, text: str, *, now: bool) -> None:
        self._taken[subtask] = self._gates.by_hand[subtask] = text
        generation = self._record.session.generation + 1
        self._record.emit(
            events.Decision(who="human", action="rewrite", subtask=subtask, generation=generation)
        )
        self._gates.overtake(Redirected("a human rewrote it"), subtask, now=now)
        self._gates.notify()

    async def _watch(self) -> None:
        from watchfiles import awatch

        folder = self._workspace.folder
        try:
            async for _ in awatch(
                folder, watch_filter=None, step=QUIET_MS, rust_timeout=LOOKS_MS, yield_on_timeout=True
            ):
                self.look(now=True)
        except (OSError, ImportError) as error:  # no inotify watches are left, or no watchfiles
            reason = getattr(error, "strerror", "") or error
            text = f"files edited by hand are seen only between steps: {reason}"
            self._record.emit(events.Warned(text=text))
