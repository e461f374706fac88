"""Where a run waits and where it is turned back: pause, decisions, redirect, stop, deny rules.

A step is one attempt, from the Coder's answer to the commit.  It belongs to the generation in which it
began; `Gates.check` is asked immediately before each write, build, launch and commit, and turns back a
step of a generation that is gone.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal

from stitch_tui.agents import events
from stitch_tui.agents.record import Record
from stitch_tui.agents.settings import Action, Autonomy, Settings
from stitch_tui.agents.state import Subtask, SubtaskState
from stitch_tui.tools.errors import Denied, LimitReached
from stitch_tui.tools.iteration import Outcome


class Overtaken(Exception):
    """The step that runs is no longer wanted; `outcome` is what becomes of its iteration."""

    outcome: Literal[Outcome.CANCELLED, Outcome.REDIRECTED] = Outcome.CANCELLED

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Redirected(Overtaken):
    """A human sends the Coder another way."""

    outcome = Outcome.REDIRECTED


class Stopped(Overtaken):
    """A human ended the run."""


@dataclass
class _Step:
    subtask: str
    generation: int
    task: asyncio.Task[Any]
    cause: Overtaken | None = None
    cancelled: bool = False


class Gates:
    """The gates of one run.

    Args:
        release: gives up the GPU; called when the run begins to wait.
    """

    def __init__(self, record: Record, settings: Settings, release: Callable[[], Awaitable[None]]) -> None:
        self._record, self._release = record, release
        self.mode, self._deny = settings.autonomy.mode, settings.autonomy.deny
        self._idle_minutes = settings.session.idle_minutes
        self._changed = asyncio.Event()
        self._step: _Step | None = None
        self._ending: Overtaken | Denied | None = None
        self._deferred: list[Callable[[], None]] = []
        self.by_hand: dict[str, str] = {}
        """Subtask -> the source that a human wrote and nobody has judged yet."""
        self.waited_s = 0.0
        """Time spent waiting for a human, which no limit counts."""

    # what the workflow asks --------------------------------------------------------------------

    def check(self, action: Action) -> None:
        """Pass, immediately before `action`.

        Raises:
            Overtaken: the step's generation is gone.
            Denied: a deny rule names the action.
        """
        if self.denies(action):
            what = "ask a model" if action == "network" else action
            raise Denied(f"a rule denies this run to {what}", where="autonomy.deny")
        step = self._step
        if step is not None and step.generation != self._record.session.generation:
            raise step.cause or Stopped("overtaken")

    def denies(self, action: Action) -> bool:
        """Does a rule deny this run that?"""
        return action in self._deny

    @property
    def redirected(self) -> bool:
        """Was the step that runs redirected meanwhile?"""
        return self._step is not None and isinstance(self._step.cause, Redirected)

    @asynccontextmanager
    async def step(self, subtask: str = "", *, pausable: bool = True) -> AsyncIterator[None]:
        """One step of the work on `subtask`.

        Args:
            pausable: it begins after a pause has ended.

        Raises:
            Overtaken: it was cancelled or turned back, or the run is to end.
            LimitReached: nobody ended the pause within the idle limit.
        """
        await (self._after_pause(subtask) if pausable else self._wait(lambda: True))
        task = asyncio.current_task()
        assert task
        self._step = step = _Step(subtask, self._record.session.generation, task)
        try:
            yield
        except asyncio.CancelledError:
            if not step.cancelled or task.uncancel() > 0:
                raise  # a signal's, or both
            raise step.cause or Stopped("overtaken") from None
        finally:
            self._step = None

    async def next_subtask(self) -> Subtask | None:
        """The first subtask that may be worked on, kernels before the host program; waits for decisions.

        None when all have ended.

        Returns before they are made when a human wrote code: that is judged first.

        Raises:
            Overtaken, Denied: a human ended the run.
            LimitReached: nobody decided within the idle limit.
        """
        if self.mode is Autonomy.AUTO and any(map(_proposed, self._open)):
            self._record.emit(events.PlanApproved(who=self.mode))
        await self._wait(lambda: self._decided or bool(self.by_hand))
        ready = [subtask for subtask in self._open if not _proposed(subtask)]
        return min(ready, key=lambda subtask: subtask.is_host, default=None)

    @property
    def paused(self) -> bool:
        """Has a human paused the run?"""
        return self._record.session.paused

    # what a human's commands do ----------------------------------------------------------------

    def notify(self) -> None:
        """Something was decided: look again."""
        self._changed.set()

    def overtake(self, cause: Overtaken, subtask: str | None, *, now: bool) -> None:
        """Turn back the step on `subtask` (None: any) now or at its next check; other steps go on.

        The session's generation has changed already.
        """
        step = self._step
        if step is None:
            return
        if subtask not in (None, step.subtask):
            self.carry_on()
            return
        step.cause = step.cause or cause
        if now and not step.cancelled:
            step.cancelled = True
            step.task.cancel()

    def carry_on(self) -> None:
        """The step that runs goes on in the generation that has begun."""
        if self._step is not None:
            self._step.generation = self._record.session.generation

    def end(self, cause: Stopped | Denied) -> None:
        """End the run: nothing passes any more."""
        self._ending = self._ending or cause
        if isinstance(cause, Stopped):
            self.overtake(cause, None, now=True)
        self.notify()

    def after_step(self, work: Callable[[], None]) -> None:
        """Do `work` when no iteration is under way."""
        self._deferred.append(work)
        self.notify()

    def settle(self) -> None:
        """Do what was deferred; no iteration is under way, and where the run has ended none will be."""
        while self._deferred:
            self._deferred.pop(0)()

    @property
    def working_on(self) -> str | None:
        """The subtask of the step that runs; empty: the program; None: no step runs."""
        return self._step.subtask if self._step else None

    # waiting -----------------------------------------------------------------------------------

    @property
    def _open(self) -> list[Subtask]:
        return [s for s in self._record.session.subtasks if not s.state.ended]

    @property
    def _decided(self) -> bool:
        """May the work go on as far as proposals are concerned?"""
        proposed = [_proposed(subtask) for subtask in self._open]
        return not all(proposed) or not proposed if self.mode is Autonomy.ASK_EACH else not any(proposed)

    async def _after_pause(self, subtask: str) -> None:
        if not self.paused:
            await self._wait(lambda: True)
            return
        before = self._record.session.subtask(subtask).state if subtask else None
        if subtask:
            self._record.emit(events.SubtaskUpdated(subtask=subtask, state=SubtaskState.PAUSED))
        await self._wait(lambda: not self.paused)
        if before and self._record.session.subtask(subtask).state is SubtaskState.PAUSED:
            self._record.emit(events.SubtaskUpdated(subtask=subtask, state=before))

    async def _wait(self, until: Callable[[], bool]) -> None:
        """Do what was deferred, and wait without the GPU until `until` holds."""
        began = monotonic()
        released = False
        while True:
            if self._ending is None:
                self.settle()
            if self._ending is not None:
                raise self._ending
            if until():
                break
            if not released:
                await self._release()
                released = True
                continue  # a command may have come meanwhile
            await self._notified()
        if released:
            self.waited_s += monotonic() - began

    async def _notified(self) -> None:
        try:
            async with asyncio.timeout(self._idle_minutes * 60):
                await self._changed.wait()
        except TimeoutError:
            raise LimitReached(
                f"nobody decided anything for {self._idle_minutes:g} minutes",
                where="session.idle_minutes",
                advice="go on with: stitch --auto --resume",
            ) from None
        self._changed.clear()


def _proposed(subtask: Subtask) -> bool:
    return subtask.state is SubtaskState.PROPOSED
