"""``stitch --auto``: progress as plain lines on stderr, the answer as a table or NDJSON on stdout."""

import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import singledispatchmethod
from typing import IO, Self

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stitch_tui.agents import events, goal
from stitch_tui.agents.state import Iteration, Session, Subtask, SubtaskState
from stitch_tui.tools.errors import ExitCode, StitchError
from stitch_tui.tools.verdict import Flag, Verdict

_TOLD = (SubtaskState.PAUSED, SubtaskState.APPROVED)
"""States of a subtask that have a line of their own; the others follow from other events."""


def visible(text: str) -> str:
    """Foreign text made safe for a terminal: control characters are shown, never obeyed."""
    return "".join(
        char if char == "\n" or unicodedata.category(char) not in ("Cc", "Cf") else f"\\x{ord(char):02x}"
        for char in text
    )


class NdjsonPrinter:
    """One event a line on stdout, flushed."""

    def __init__(self, out: IO[str] | None = None) -> None:
        self._out = out or sys.stdout
        self._finished = False

    def __call__(self, event: events.Event) -> None:
        self._finished = isinstance(event, events.SessionFinished)
        print(event.model_dump_json(), file=self._out, flush=True)

    @contextmanager
    def to_the_end(self) -> Iterator[Self]:
        """See that ``session.finished`` is the last line also when no run could begin."""
        try:
            yield self
        except Exception as error:
            if not self._finished and not isinstance(error, BrokenPipeError):
                self._explain(error)
            raise

    def _explain(self, error: Exception) -> None:
        known = isinstance(error, StitchError)
        code = error.exit_code if isinstance(error, StitchError) else ExitCode.GOAL_NOT_MET
        text = str(error) if known else f"a fault in stitch itself: {type(error).__name__}: {error}"
        now = datetime.now(UTC)
        self(events.Failed(time=now, kind=type(error).__name__, text=text, exit_code=code))
        self(events.SessionFinished(time=now, status=goal.status(code), exit_code=code, reason=text))


class PlainPrinter:
    """One short line an event on stderr; at the end the table of subtasks on stdout."""

    def __init__(self, progress: IO[str] | None = None, answer: IO[str] | None = None) -> None:
        self._progress, self._answer = progress or sys.stderr, answer or sys.stdout
        self._session = Session()

    def __call__(self, event: events.Event) -> None:
        self._session = event.applied_to(self._session)
        if line := self._line(event):
            print(visible(line).replace("\n", " "), file=self._progress, flush=True)
        if isinstance(event, events.SessionFinished) and self._session.plan is not None:
            self._summary(event)

    @singledispatchmethod
    def _line(self, event: events.Event) -> str:
        return ""

    @_line.register
    def _(self, event: events.SessionStarted) -> str:
        reason = f" ({event.device_reason})" if event.device_reason else ""
        return f"session {event.session}: {event.reference} on {event.device}{reason}, branch {event.branch}"

    @_line.register
    def _(self, event: events.ReferenceProfiled) -> str:
        lines = [f"reference: {event.nodes} operators, variants {', '.join(event.variants)}"]
        lines += [f"  note: {note}" for note in event.notes]
        return "; ".join(line.strip() for line in lines)

    @_line.register
    def _(self, event: events.PlanProposed) -> str:
        titles = (
            ", ".join(f"{s.id} {s.title}" for s in event.plan.subtasks) or "nothing to write a kernel for"
        )
        left = sum(len(u.nodes) for u in event.plan.uncovered)
        return f"plan: {titles}" + (f"; {left} operators stay with PyTorch" if left else "")

    @_line.register
    def _(self, event: events.SessionResumed) -> str:
        return f"session {event.session} goes on, on {event.device}"

    @_line.register
    def _(self, event: events.Decision) -> str:
        return f"decision: {event.sentence}"

    @_line.register
    def _(self, event: events.IterationEnded) -> str:
        return f"  iteration {event.iteration} {event.outcome}: {event.reason}"

    @_line.register
    def _(self, event: events.SubtaskUpdated) -> str:
        return f"  {event.subtask} {event.state}" if event.state in _TOLD else ""

    @_line.register
    def _(self, event: events.CodeWritten) -> str:
        return f"  {event.subtask} iteration {event.iteration}: {event.candidate.strategy}"

    @_line.register
    def _(self, event: events.BuildFinished) -> str:
        build = event.build
        how = "from the cache" if build.cached else f"in {build.seconds:.1f} s"
        return f"  {event.subtask} build {'ok' if build.ok else 'failed'} {how}"

    @_line.register
    def _(self, event: events.VerdictReached) -> str:
        return f"  {event.subtask or 'program'} {describe(event.verdict)} [{event.outcome}]"

    @_line.register
    def _(self, event: events.Routed) -> str:
        return f"  {event.subtask} -> {event.next}: {event.reason}"

    @_line.register
    def _(self, event: events.IterationCommitted) -> str:
        return f"  commit {event.sha[:10]} {event.subject}"

    @_line.register
    def _(self, event: events.Warned) -> str:
        return f"warning: {event.text}"

    @_line.register
    def _(self, event: events.Failed) -> str:
        return f"stitch: {event.text}"

    @_line.register
    def _(self, event: events.SessionFinished) -> str:
        return f"{event.status}: {event.reason}"

    def _summary(self, event: events.SessionFinished) -> None:
        console = Console(file=self._answer, markup=False, highlight=False, soft_wrap=False)
        console.print(summary_table(self._session))
        if event.coverage is not None:
            console.print(f"coverage {event.coverage:.0%} of the reference's measured time")
        if self._session.branch:
            console.print(f"branch {self._session.branch}, best {event.best[:10]}")


def describe(verdict: Verdict) -> str:
    """A verdict in one line: category, error against limit, speedups or *functional, not timed*."""
    parts = [str(verdict.category)]
    if verdict.error is not None and verdict.error_limit is not None:
        parts.append(f"error {verdict.error:.1e} of {verdict.error_limit:.1e} allowed")
    if verdict.timing:
        parts += [f"{r.value:.2f}x over {name}" for name, r in verdict.timing.speedups.items()]
    if Flag.FUNCTIONAL in verdict.flags:
        parts.append("functional, not timed")
    if not verdict.correct:
        parts.append(verdict.summary)
    return ", ".join(parts)


def summary_table(session: Session) -> Table:
    """Subtasks and the program with their verdicts."""
    table = Table("subtask", "title", "state", "share", "attempts", "verdict", box=None, pad_edge=False)
    for subtask in session.plan.subtasks if session.plan else ():
        table.add_row(*map(_cell, _row(session, subtask)))
    if session.program is not None:
        table.add_row(*map(_cell, ("program", "", "", "", "", describe(session.program))))
    return table


def _row(session: Session, subtask: Subtask) -> tuple[str, ...]:
    shown = session.best_of(subtask) or _last(session, subtask)
    verdict = describe(shown.verdict) if shown and shown.verdict else subtask.reason
    share = "" if subtask.share is None else f"{subtask.share:.0%}"
    return subtask.id, subtask.title, str(subtask.state), share, str(subtask.attempts), verdict


def _last(session: Session, subtask: Subtask) -> Iteration | None:
    attempts = session.attempts_of(subtask.id)
    return attempts[-1] if attempts else None


def _cell(text: str) -> Text:
    return Text(visible(text), overflow="fold")
