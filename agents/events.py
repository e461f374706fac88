"""Every event of a session.  The journal, the socket and ``--json`` all carry these lines.

One object a line: ``{"v": 1, "seq": n, "time": ISO 8601, "session": id, "type": ..., ...}``.  A
session's state is `fold` over its events; nothing else changes it.  `agents.schema` generates
``docs/events.schema.json``.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from stitch_tui.agents.state import (
    Advice,
    Candidate,
    Iteration,
    Message,
    Plan,
    Session,
    Status,
    Subtask,
    SubtaskState,
    Usage,
)
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.profiling.profile import Profile, Trace
from stitch_tui.tools.verdict import Build, Finding, Timing, Trial, Verdict

VERSION: Literal[1] = 1


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    v: Literal[1] = VERSION
    seq: int = 0
    """Position in the session, from 1; the journal assigns it."""
    time: datetime | None = None
    session: str = ""

    def applied_to(self, session: Session) -> Session:
        """The state after this event; most events carry detail and leave it as it is."""
        return session


class SessionStarted(_Event):
    type: Literal["session.started"] = "session.started"
    reference: str
    device: str
    device_reason: str = ""
    branch: str = ""
    base: str = ""
    """Commit that the session's branch starts from; empty on an unborn HEAD."""
    tip: str = ""
    """The commit that opens the branch."""
    target: str = ""
    """The reference as the user named it, ``model.py:Net``."""
    options: dict[str, Any] = {}
    """Settings of the reference that verdicts depend on: mode, dtype, precision."""
    autonomy: str = ""
    roles: dict[str, str] = {}
    """Planner, coder and verifier: ``builtin`` or the model's name."""

    def applied_to(self, session: Session) -> Session:
        names = ("reference", "device", "branch", "base", "tip", "target", "options", "autonomy")
        fields = {name: getattr(self, name) for name in names}
        return session.model_copy(update={"id": self.session, **fields})


class SessionResumed(_Event):
    """An engine took up a session that had ended, or whose engine was killed."""

    type: Literal["session.resumed"] = "session.resumed"
    device: str
    autonomy: str = ""

    def applied_to(self, session: Session) -> Session:
        taken_up = {"status": Status.RUNNING, "reason": "", "autonomy": self.autonomy or session.autonomy}
        return session.model_copy(update=taken_up)


class ReferenceProfiled(_Event):
    type: Literal["reference.profiled"] = "reference.profiled"
    sha256: str
    nodes: int
    time_us: float | None = None
    """Sum over nodes, each measured alone; None on the emulator, where nothing is measured."""
    opaque: str = ""
    """Why the program could not be exported; empty when it was."""
    variants: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    hottest: tuple[dict[str, Any], ...] = ()
    trace: Trace = Trace()
    """Of whole forward passes in a row; empty on the emulator and where no profiler worked."""

    def applied_to(self, session: Session) -> Session:
        return session.model_copy(update={"sha256": self.sha256})


class PlanProposed(_Event):
    type: Literal["plan.proposed"] = "plan.proposed"
    plan: Plan

    def applied_to(self, session: Session) -> Session:
        return session.model_copy(update={"plan": self.plan})


class PlanUpdated(PlanProposed):
    type: Literal["plan.updated"] = "plan.updated"  # type: ignore[assignment]


class PlanApproved(_Event):
    type: Literal["plan.approved"] = "plan.approved"
    who: str

    def applied_to(self, session: Session) -> Session:
        if session.plan is None:
            return session
        approved = {"state": SubtaskState.APPROVED}
        subtasks = tuple(
            s.model_copy(update=approved) if s.state is SubtaskState.PROPOSED else s
            for s in session.plan.subtasks
        )
        return session.model_copy(update={"plan": session.plan.model_copy(update={"subtasks": subtasks})})


class SubtaskStarted(_Event):
    type: Literal["subtask.started"] = "subtask.started"
    subtask: str
    title: str

    def applied_to(self, session: Session) -> Session:
        return _with_subtask(session, self.subtask, state=SubtaskState.CODING)


class SubtaskUpdated(_Event):
    type: Literal["subtask.updated"] = "subtask.updated"
    subtask: str
    state: SubtaskState

    def applied_to(self, session: Session) -> Session:
        return _with_subtask(session, self.subtask, state=self.state)


class SubtaskFinished(_Event):
    type: Literal["subtask.finished"] = "subtask.finished"
    subtask: str
    state: Literal[SubtaskState.DONE, SubtaskState.SKIPPED, SubtaskState.FAILED]
    best: int | None = None
    reason: str = ""

    def applied_to(self, session: Session) -> Session:
        return _with_subtask(session, self.subtask, state=self.state, best=self.best, reason=self.reason)


class SubtaskReopened(_Event):
    """Its best version turned out to make the program wrong: the work on it goes on without one."""

    type: Literal["subtask.reopened"] = "subtask.reopened"
    subtask: str
    reason: str

    def applied_to(self, session: Session) -> Session:
        reopened = session.model_copy(update={"program": None})
        return _with_subtask(
            reopened, self.subtask, state=SubtaskState.APPROVED, best=None, reason=self.reason
        )


class IterationStarted(_Event):
    type: Literal["iteration.started"] = "iteration.started"
    iteration: int
    subtask: str = ""
    attempt: int
    kind: Kind

    def applied_to(self, session: Session) -> Session:
        started = Iteration(number=self.iteration, subtask=self.subtask, attempt=self.attempt, kind=self.kind)
        grown = session.model_copy(update={"iterations": _appended(session.iterations, started)})
        return _with_subtask(grown, self.subtask, attempts=self.attempt) if self.subtask else grown


class CoderDelta(_Event):
    """Streamed text; passes unjournalled and unnumbered."""

    type: Literal["coder.delta"] = "coder.delta"
    subtask: str
    text: str


class CodeWritten(_Event):
    """A candidate: journalled before its file is written, so that a kill makes it nobody else's."""

    type: Literal["code.written"] = "code.written"
    iteration: int
    subtask: str
    candidate: Candidate
    path: str

    def applied_to(self, session: Session) -> Session:
        return _with_iteration(session, self.iteration, candidate=self.candidate)


class BuildFinished(_Event):
    type: Literal["build.finished"] = "build.finished"
    iteration: int
    subtask: str
    build: Build


class CheckFinished(_Event):
    type: Literal["check.finished"] = "check.finished"
    iteration: int
    subtask: str
    trials: tuple[Trial, ...]
    findings: tuple[Finding, ...] = ()


class TimingFinished(_Event):
    type: Literal["timing.finished"] = "timing.finished"
    iteration: int
    subtask: str
    timing: Timing


class Profiled(_Event):
    """Where a candidate's time goes; `profile.why` says which tool was asked and why."""

    type: Literal["profiled"] = "profiled"
    iteration: int
    subtask: str
    profile: Profile


class VerdictReached(_Event):
    type: Literal["verdict"] = "verdict"
    iteration: int
    subtask: str
    verdict: Verdict
    outcome: Outcome

    def applied_to(self, session: Session) -> Session:
        judged = _with_iteration(session, self.iteration, verdict=self.verdict, outcome=self.outcome)
        if not self.subtask:
            return judged.model_copy(update={"program": self.verdict})
        if self.outcome is Outcome.KEPT:
            return _with_subtask(judged, self.subtask, best=self.iteration)
        return judged


class IterationEnded(_Event):
    """An iteration that ends without a verdict of its own: cancelled, redirected, or a restore or seal."""

    type: Literal["iteration.ended"] = "iteration.ended"
    iteration: int
    outcome: Literal[Outcome.CANCELLED, Outcome.REDIRECTED, Outcome.KEPT]
    reason: str

    def applied_to(self, session: Session) -> Session:
        return _with_iteration(session, self.iteration, outcome=self.outcome)


class Routed(_Event):
    type: Literal["route"] = "route"
    subtask: str
    next: str
    reason: str


class CommitIntended(_Event):
    """Announces the commit of an iteration, so that a resumed session can adopt it."""

    type: Literal["commit.intended"] = "commit.intended"
    iteration: int
    parent: str


class IterationCommitted(_Event):
    type: Literal["iteration.committed"] = "iteration.committed"
    iteration: int
    sha: str
    subject: str

    def applied_to(self, session: Session) -> Session:
        told = session.model_copy(update={"undelivered": (), "tip": self.sha})
        return _with_iteration(told, self.iteration, commit=self.sha)


class Decision(_Event):
    """What a human decided; the next commit says so in its trailer ``Stitch-Decision``."""

    type: Literal["decision"] = "decision"
    who: str
    action: str
    subtask: str = ""
    text: str = ""
    iteration: int | None = None
    """Of a restore: the iteration that holds the subtask's best from now on."""
    generation: int = 0
    """From now on."""

    @property
    def sentence(self) -> str:
        """``redirect s01 by human: use shared memory``."""
        about = self.subtask or (f"iteration {self.iteration}" if self.iteration is not None else "")
        head = " ".join(part for part in (self.action, about, f"by {self.who}") if part)
        return f"{head}: {self.text}" if self.text else head

    def applied_to(self, session: Session) -> Session:
        told = {
            "generation": max(self.generation, session.generation),
            "undelivered": (*session.undelivered, self.sentence),
        }
        decided = session.model_copy(update=told)
        if self.action in ("pause", "resume"):
            return decided.model_copy(update={"paused": self.action == "pause"})
        if self.action == "autonomy":
            return decided.model_copy(update={"autonomy": self.text})
        if self.action == "redirect":
            return _with_subtask(decided, self.subtask, direction=self.text)
        if self.action == "restore" and self.subtask:
            return _with_subtask(decided, self.subtask, best=self.iteration)
        return decided


class Advised(_Event):
    """The Verifier's diagnosis of an iteration, and the one change that it recommends."""

    type: Literal["advice"] = "advice"
    iteration: int
    subtask: str
    advice: Advice

    def applied_to(self, session: Session) -> Session:
        return _with_iteration(session, self.iteration, advice=self.advice)


class Citation(BaseModel):
    """A place in the documentation that a role was shown."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    library: str
    version: str = ""
    name: str
    place: str
    """``file:line`` on this machine."""
    is_other_version: bool = False
    """It documents another version than the compiler's."""

    @property
    def sentence(self) -> str:
        """``cudaMallocHost (runtime 13.0, cuda_runtime_api.h:4583)``."""
        library = " ".join(filter(None, (self.library, self.version)))
        other = ", not the compiler's version" if self.is_other_version else ""
        return f"{self.name} ({library}, {self.place.rpartition('/')[2]}{other})"


class Retrieved(_Event):
    """What was looked up in the local documentation for a role, and what it was shown."""

    type: Literal["retrieval"] = "retrieval"
    role: str
    subtask: str = ""
    reason: Literal["build error", "asked"]
    query: str
    citations: tuple[Citation, ...] = ()

    @property
    def sentence(self) -> str:
        """``looked up 'cudaMalocHost': cudaMallocHost (runtime 13.0, cuda_runtime_api.h:4583)``."""
        shown = [citation.sentence for citation in self.citations]
        return f"looked up {self.query!r}: {'; '.join(shown) or 'nothing was found'}"


class Exchanged(_Event):
    """One request to a model and what came back, whole, partial or not at all; secrets are masked."""

    type: Literal["exchange"] = "exchange"
    role: str
    stage: str
    """What was asked for: plan, draft, repair, ..."""
    subtask: str = ""
    model: str
    messages: tuple[Message, ...] = ()
    """Empty when the same request is made again after a failure."""
    answer: str = ""
    reasoning: str = ""
    finish: str = ""
    """The endpoint's finish_reason; empty when the answer did not end."""
    problem: str = ""
    """Why the answer is not whole: cut, cancelled, refused."""
    seconds: float = 0.0


class UsageCounted(_Event):
    type: Literal["usage"] = "usage"
    role: str
    model: str
    usage: Usage

    def applied_to(self, session: Session) -> Session:
        known = session.usage.get(self.role)
        usage = {**session.usage, self.role: known + self.usage if known else self.usage}
        return session.model_copy(update={"usage": usage})


class ModelWaits(_Event):
    """A model's endpoint failed, and is asked again after a pause."""

    type: Literal["model.waiting"] = "model.waiting"
    role: str
    reason: str
    seconds: float
    """Until the next attempt, from this event's time."""
    attempt: int
    attempts: int
    """Most that are made."""


class Warned(_Event):
    type: Literal["warning"] = "warning"
    text: str


class Failed(_Event):
    type: Literal["error"] = "error"
    kind: str
    """Class of the error, ``ReferenceFault``."""
    text: str
    retryable: bool = False
    exit_code: int


class SessionFinished(_Event):
    """The last line of every session, also after a signal."""

    type: Literal["session.finished"] = "session.finished"
    status: Status
    exit_code: int
    reason: str
    best: str = ""
    """Commit that holds the best version."""
    coverage: float | None = None

    def applied_to(self, session: Session) -> Session:
        ended = {"status": self.status, "reason": self.reason, "coverage": self.coverage}
        return session.model_copy(update=ended | {"paused": False})


Event = Annotated[
    SessionStarted
    | SessionResumed
    | ReferenceProfiled
    | PlanProposed
    | PlanUpdated
    | PlanApproved
    | SubtaskStarted
    | SubtaskUpdated
    | SubtaskFinished
    | SubtaskReopened
    | IterationStarted
    | CoderDelta
    | CodeWritten
    | BuildFinished
    | CheckFinished
    | TimingFinished
    | Profiled
    | VerdictReached
    | IterationEnded
    | Routed
    | CommitIntended
    | IterationCommitted
    | Decision
    | Advised
    | Retrieved
    | Exchanged
    | UsageCounted
    | ModelWaits
    | Warned
    | Failed
    | SessionFinished,
    Field(discriminator="type"),
]

_ADAPTER: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))


def parse(line: str | bytes) -> Event:
    """The event on one line of a journal or stream.

    Raises:
        pydantic.ValidationError: not an event of this version.
    """
    return _ADAPTER.validate_json(line)


def fold(events: Iterable[Event], start: Session | None = None) -> Session:
    """The state that a sequence of events leads to."""
    folding = Folding(start)
    for event in events:
        folding.add(event)
    return folding.session.model_copy(update={"iterations": tuple(folding.session.iterations)})


class Folding:
    """A fold that goes on: its session's iterations grow in place, so read them and keep none."""

    def __init__(self, start: Session | None = None) -> None:
        session = start or Session()
        self.session = session.model_copy(update={"iterations": _Growing(session.iterations)})

    def add(self, event: Event) -> None:
        """Take the next event."""
        self.session = event.applied_to(self.session)


class _Growing(list[Iteration]):
    """Iterations while a fold alone holds them: changed in place, so that its time stays linear."""


def _appended(iterations: Sequence[Iteration], new: Iteration) -> Sequence[Iteration]:
    if isinstance(iterations, _Growing):
        iterations.append(new)
        return iterations
    return (*iterations, new)


def _with_subtask(session: Session, id: str, **changes: Any) -> Session:
    if session.plan is None:
        return session
    subtasks: tuple[Subtask, ...] = tuple(
        s.model_copy(update=changes) if s.id == id else s for s in session.plan.subtasks
    )
    return session.model_copy(update={"plan": session.plan.model_copy(update={"subtasks": subtasks})})


def _with_iteration(session: Session, number: int, **changes: Any) -> Session:
    index = number - 1
    changed = session.iteration(number).model_copy(update=changes)
    known: Sequence[Iteration] = session.iterations
    if isinstance(known, _Growing):
        known[index] = changed
        return session
    iterations = (*known[:index], changed, *known[index + 1 :])
    return session.model_copy(update={"iterations": iterations})
