"""The board: everything the session screen shows, folded from the stream of events.

Pure data, changed only by `Board.add`.  The screen looks at `changes` a few times a second and draws what
is new; so a flood of events costs one redraw.
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil

from stitch_tui.agents import events
from stitch_tui.agents.events import Event, Folding
from stitch_tui.agents.state import Iteration, Session, Status, Subtask, SubtaskState
from stitch_tui.tools.verdict import Build

NOTES = 200
"""Warnings, errors, routes and decisions that are kept for the log."""
RECENT = 300
"""Iterations of one subtask that panes look at."""
STREAM_LINES = 20_000
"""Streamed lines that are kept; older ones go first."""


@dataclass(frozen=True)
class Note:
    """One line of the log."""

    kind: str
    """``warning``, ``error``, ``route``, ``race``, ``docs``, ``decision`` or ``run``."""
    text: str
    time: datetime | None = None
    citations: tuple[events.Citation, ...] = ()
    """What the documentation said; `text` ends where they begin."""

    @property
    def sentence(self) -> str:
        """The text with its citations."""
        said = "; ".join(citation.sentence for citation in self.citations)
        return f"{self.text}: {said}" if said else self.text


@dataclass
class Stream:
    """Code as a Coder writes it, before it is an iteration."""

    subtask: str = ""
    lines: list[str] = field(default_factory=list)
    """Complete lines."""
    rest: str = ""
    """The line that is being written."""
    dropped: int = 0
    """Lines at the beginning that were let go."""
    finished: bool = True

    def add(self, text: str) -> None:
        first, *more = text.split("\n")
        self.rest += first
        for part in more:
            self.lines.append(self.rest)
            self.rest = part
        if len(self.lines) > STREAM_LINES:
            excess = len(self.lines) - STREAM_LINES * 3 // 4
            del self.lines[:excess]
            self.dropped += excess


class Board:
    """The session and what goes with it."""

    def __init__(self) -> None:
        self._fold = Folding()
        self.started: events.SessionStarted | None = None
        self.profile: events.ReferenceProfiled | None = None
        self.stream = Stream()
        self.builds: dict[int, Build] = {}
        """Of iterations that have no verdict yet."""
        self.notes: deque[Note] = deque(maxlen=NOTES)
        self.attempts: dict[str, list[int]] = {}
        """Subtask id (empty: the program) -> numbers of its iterations."""
        self.cited: dict[str, tuple[events.Citation, ...]] = {}
        """Subtask id (empty: the whole) -> what roles were shown of the documentation, each once."""
        self.waits: events.ModelWaits | None = None
        """What a model's endpoint is being waited for."""
        self.finished: events.SessionFinished | None = None
        self.seq = 0
        self.changes = 0
        """Counts events; a drawing remembers which count it shows."""
        self.streamed = 0
        """Counts streamed pieces."""

    @property
    def session(self) -> Session:
        return self._fold.session

    def add(self, event: Event) -> None:
        """Take one event of the stream; one that was seen already (after reconnecting) changes nothing."""
        if isinstance(event, events.CoderDelta):
            self._stream(event)
            return
        if event.seq and event.seq <= self.seq:
            return
        self.seq = event.seq or self.seq + 1
        self._fold.add(event)
        self.changes += 1
        self._keep(event)

    def _stream(self, event: events.CoderDelta) -> None:
        self.waits = None
        if self.stream.finished or self.stream.subtask != event.subtask:
            self.stream = Stream(subtask=event.subtask, finished=False)
        self.stream.add(event.text)
        self.streamed += 1

    def _keep(self, event: Event) -> None:
        """What the session's state leaves out."""
        match event:
            case events.ModelWaits():
                self.waits = event
                self._note("warning", event.sentence, event)
            case events.Exchanged():
                self.waits = None
            case events.SessionStarted():
                self.started = event
            case events.ReferenceProfiled():
                self.profile = event
                for text in event.notes:
                    self._note("warning", text, event)
            case events.IterationStarted():
                self.attempts.setdefault(event.subtask, []).append(event.iteration)
            case events.CodeWritten():
                self.stream.finished = True
            case events.BuildFinished():
                self.builds = {event.iteration: event.build}
            case events.Routed():
                self._note("route", f"{event.subtask}: {event.next}: {event.reason}", event)
            case events.Raced():
                self._note("race", f"{event.subtask}: {event.race.sentence}", event)
            case events.Retrieved():
                said = event.asked if event.citations else event.sentence
                self._note("docs", f"{event.subtask or event.role}: {said}", event, event.citations)
                known = self.cited.get(event.subtask, ())
                self.cited[event.subtask] = tuple(dict.fromkeys((*known, *event.citations)))
            case events.Decision():
                self._note("decision", event.sentence, event)
            case events.Warned():
                self._note("warning", event.text, event)
            case events.Failed():
                self._note("error", event.text, event)
            case events.SessionResumed():
                self.finished = None
            case events.SessionFinished():
                self.finished, self.stream.finished = event, True
                self._note("run", f"{event.status}: {event.reason}", event)

    def _note(self, kind: str, text: str, event: Event, citations: tuple[events.Citation, ...] = ()) -> None:
        self.notes.append(Note(kind, text, event.time, citations))

    # what panes ask --------------------------------------------------------------------------------

    @property
    def proposed(self) -> list[Subtask]:
        """What waits for a decision."""
        return [s for s in self.session.subtasks if s.state is SubtaskState.PROPOSED]

    @property
    def active(self) -> Subtask | None:
        """The subtask that is worked on."""
        return next((s for s in self.session.subtasks if s.state.active), None)

    def subtask(self, id: str) -> Subtask | None:
        return next((s for s in self.session.subtasks if s.id == id), None)

    def iterations_of(self, id: str) -> list[Iteration]:
        """The latest iterations of a subtask, or of the program (empty id), oldest first."""
        numbers = self.attempts.get(id, [])[-RECENT:]
        return [self.session.iterations[number - 1] for number in numbers]

    def latest(self, id: str) -> Iteration | None:
        numbers = self.attempts.get(id)
        return self.session.iterations[numbers[-1] - 1] if numbers else None

    def best(self, id: str) -> Iteration | None:
        subtask = self.subtask(id)
        return self.session.best_of(subtask) if subtask else None

    def build_of(self, iteration: Iteration) -> Build | None:
        return iteration.verdict.build if iteration.verdict else self.builds.get(iteration.number)

    @property
    def phase(self) -> str:
        """What the run does now, in a few words."""
        session = self.session
        if self.finished:
            return str(self.finished.status)
        if session.paused:
            return "paused"
        if session.plan is None:
            return "planning" if self.profile else "reading the reference"
        if active := self.active:
            return f"{active.state} {active.id}"
        if session.pending is not None and not session.pending.subtask:
            return "checking the whole program"
        return "waiting for you" if self.proposed else "working"

    def countdown(self, now: datetime) -> str:
        """Which model is asked again, in how many seconds and why; empty while none is waited for."""
        waits = self.waits
        if waits is None or waits.time is None or self.finished:
            return ""
        left = waits.seconds - (now - waits.time).total_seconds()
        return f"{waits.role} asks again in {ceil(left)} s: {waits.reason}" if left > 0 else ""

    @property
    def running(self) -> bool:
        return self.finished is None and self.session.status is Status.RUNNING
