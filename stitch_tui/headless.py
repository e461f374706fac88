"""``stitch --auto``: progress as plain lines on stderr, the answer as a table or NDJSON on stdout."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import singledispatchmethod
from pathlib import Path
from typing import IO

from stitch_tui.agents import events, goal, journal
from stitch_tui.agents.state import Session, Subtask, SubtaskState
from stitch_tui.plain_text import count, one_line
from stitch_tui.tools.errors import ExitCode, StitchError
from stitch_tui.tools.iteration import Outcome
from stitch_tui.tools.profiling.summary import lines, system_line
from stitch_tui.tools.redaction import redacted
from stitch_tui.view.ending import summary
from stitch_tui.view.verdict_line import built, speedups
from stitch_tui.view.wording import error_of_limit

LABEL = 11
"""Width of the words before the first lines: session, reference, device, plan."""
CLEAR = "\r\x1b[2K"
"""Back to the start of the terminal's line, which becomes empty."""
TOLD = (SubtaskState.PAUSED, SubtaskState.APPROVED)
"""States of a subtask that have a line of their own; the others follow from other events."""


class NdjsonPrinter:
    """One event a line on stdout, flushed; the last one is always ``session.finished``."""

    def __init__(self, out: IO[str] | None = None) -> None:
        self._out = out or sys.stdout
        self._last: events.Event | None = None

    def __call__(self, event: events.Event) -> None:
        print(event.model_dump_json(), file=self._out, flush=True)
        self._last = event

    def doing(self, text: str) -> None:
        """Nothing: a stream of events carries no other lines."""

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Say how a run ended that could not begin, or could not write its own last event."""
        try:
            yield
        except Exception as error:
            if not isinstance(self._last, events.SessionFinished):
                with suppress(OSError):  # the first error is the one to report
                    self._explain(error)
            raise

    def _explain(self, error: Exception) -> None:
        """The error, and the end that it made."""
        known = isinstance(error, StitchError)
        code = error.exit_code if isinstance(error, StitchError) else ExitCode.GOAL_NOT_MET
        text = redacted(str(error) if known else f"a fault in stitch itself: {type(error).__name__}: {error}")
        self(self._next(events.Failed(kind=type(error).__name__, text=text, exit_code=code)))
        self(self._next(events.SessionFinished(status=goal.status(code), exit_code=code, reason=text)))

    def _next(self, event: events.Event) -> events.Event:
        """`event` behind the last one that was printed."""
        last = self._last
        stamp = {"time": datetime.now(UTC), "session": last.session if last else ""}
        return event.model_copy(update={**stamp, "seq": last.seq + 1 if last else 1})


class PlainPrinter:
    """A line for each iteration on stderr; at the end the result and what to do next on stdout.

    Args:
        live: on a terminal, say what goes on in a line that changes.
        project: where the journal of a session lies that is taken up; what it tells is not printed again.
    """

    def __init__(
        self,
        progress: IO[str] | None = None,
        answer: IO[str] | None = None,
        *,
        live: bool = True,
        project: Path | None = None,
    ) -> None:
        self._progress, self._answer = progress or sys.stderr, answer or sys.stdout
        self._project = project
        self._session = Session()
        self._failure = ""
        self._live = live and self._progress.isatty() and os.environ.get("TERM") != "dumb"

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Leave a clear line for the error that ends a run: the command line reports it."""
        try:
            yield
        finally:
            self.doing("")

    def __call__(self, event: events.Event) -> None:
        if isinstance(event, events.SessionResumed) and self._project and not self._session.id:
            self._session = events.fold(journal.read(journal.path_of(self._project, event.session)))
        else:
            self._session = event.applied_to(self._session)
        for line in self._lines(event):
            self._say(f"{CLEAR if self._live else ''}{one_line(line)}\n")
        if isinstance(event, events.SessionFinished):
            self.doing("")
            for line in summary(self._session, event, told=self._failure):
                print(line, file=self._answer)
            self._answer.flush()

    def doing(self, text: str) -> None:
        """On a terminal, say what goes on now, in a line that the next one replaces."""
        if self._live:
            room = max(shutil.get_terminal_size().columns - 1, 1)
            self._say(f"{CLEAR}{one_line(text)[:room]}")

    def _say(self, text: str) -> None:
        """Progress is for whoever looks: without anyone the answer is printed all the same."""
        with suppress(OSError):
            print(text, end="", file=self._progress, flush=True)

    @singledispatchmethod
    def _lines(self, event: events.Event) -> Iterator[str]:
        yield from ()

    @_lines.register
    def _(self, event: events.SessionStarted) -> Iterator[str]:
        yield _labelled("session", event.session)
        reason = f": {event.device_reason}" if event.device_reason else ""
        yield _labelled("device", f"{event.device}{reason}")
        self.doing("reading and measuring the reference")

    @_lines.register
    def _(self, event: events.ReferenceProfiled) -> Iterator[str]:
        about = f"{self._session.reference}, {count(event.nodes, 'operator')}"
        yield _labelled("reference", f"{about}, shapes {', '.join(event.variants)}")
        if event.trace.system is not None:
            yield _labelled("profile", system_line(event.trace.system, event.trace.evidence))
        if event.opaque:
            yield _labelled("note", f"cannot be exported, so it is one subtask: {event.opaque}")
        yield from (_labelled("note", note) for note in event.notes)

    @_lines.register
    def _(self, event: events.PlanProposed) -> Iterator[str]:
        label = "plan"
        for subtask in event.plan.subtasks:
            yield _labelled(label, f"{subtask.id}  {subtask.title}{_worth(subtask)}")
            label = ""
        for left in event.plan.uncovered:
            yield _labelled(label, f"{count(len(left.nodes), 'operator')} left to PyTorch: {left.reason}")
            label = ""
        if label:
            yield _labelled(label, "nothing to write a kernel for")

    @_lines.register
    def _(self, event: events.SessionResumed) -> Iterator[str]:
        yield _labelled("goes on", f"session {event.session} on {event.device}")
        if self._session.paused:
            yield _labelled("paused", "as it was when its engine was killed; end that with: stitch resume")

    @_lines.register
    def _(self, event: events.Decision) -> Iterator[str]:
        yield _labelled("decision", event.sentence)

    @_lines.register
    def _(self, event: events.IterationEnded) -> Iterator[str]:
        yield f"{event.iteration:>4}  {event.outcome}: {event.reason}"

    @_lines.register
    def _(self, event: events.SubtaskUpdated) -> Iterator[str]:
        subtask = self._session.subtask(event.subtask)
        if event.state.active:
            self.doing(f"      {subtask.id}  {event.state} {subtask.title}")
        elif event.state in TOLD:
            yield f"      {subtask.id}  {event.state}"

    @_lines.register
    def _(self, event: events.IterationStarted) -> Iterator[str]:
        if not event.subtask:
            self.doing("      program  building and checking the whole")
        yield from ()

    @_lines.register
    def _(self, event: events.Profiled) -> Iterator[str]:
        for line in lines(event.profile):
            yield f"{'':15}{line}"

    @_lines.register
    def _(self, event: events.VerdictReached) -> Iterator[str]:
        verdict = event.verdict
        tried = self._session.iteration(event.iteration).candidate
        who = f"{event.iteration:>4}  {event.subtask or 'program':<9}"
        error = [f"error {text}"] if (text := error_of_limit(verdict)) else []
        strategy = [tried.strategy] if tried else []
        said = ", ".join((*error, *speedups(verdict), *built(verdict), *strategy))
        kept = "" if event.outcome is Outcome.KEPT else f", {event.outcome}"
        yield f"{who}{verdict.category}{kept}: {said}"
        if not verdict.correct:
            yield f"{'':15}{verdict.summary}"

    @_lines.register
    def _(self, event: events.Routed) -> Iterator[str]:
        subtask = self._session.subtask(event.subtask)
        if event.next in ("done", "give up") and subtask.attempts > 1:
            yield f"{'':6}{event.subtask:<9}{event.next} after {subtask.attempts} attempts: {event.reason}"

    @_lines.register
    def _(self, event: events.SubtaskReopened) -> Iterator[str]:
        yield f"{'':6}{event.subtask:<9}reopened: {event.reason}"

    @_lines.register
    def _(self, event: events.Raced) -> Iterator[str]:
        yield f"{'':6}{event.subtask:<9}race: {event.race.sentence}"

    @_lines.register
    def _(self, event: events.Advised) -> Iterator[str]:
        yield f"{'':6}{event.subtask:<9}{event.advice.bottleneck}: {event.advice.change}"

    @_lines.register
    def _(self, event: events.Retrieved) -> Iterator[str]:
        yield f"{'':6}{event.subtask or event.role:<9}{event.sentence}"

    @_lines.register
    def _(self, event: events.ModelWaits) -> Iterator[str]:
        yield event.sentence

    @_lines.register
    def _(self, event: events.Warned) -> Iterator[str]:
        yield f"warning: {event.text}"

    @_lines.register
    def _(self, event: events.Failed) -> Iterator[str]:
        self._failure = event.text
        yield f"stitch: {event.text}"


def _worth(subtask: Subtask) -> str:
    """What the subtask can bring: its share, Amdahl's bound for the program, its own roofline bound."""
    if subtask.share is None:
        return ""
    limit = "" if subtask.amdahl is None else f", at most {subtask.amdahl:.2f}x"
    bound = "" if subtask.bound_us is None else f", bound {subtask.bound_us:.1f} us"
    return f"  ({subtask.share:.0%} of the reference{limit}{bound})"


def _labelled(label: str, text: str) -> str:
    return f"{label:<{LABEL}}{text}"
