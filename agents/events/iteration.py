"""An iteration, from its start to its commit."""

from typing import Literal

from stitch_tui.agents.events.base import SessionEvent
from stitch_tui.agents.events.changes import appended, with_iteration, with_subtask
from stitch_tui.agents.state import Advice, Candidate, Iteration, Session
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.profiling.profile import Profile
from stitch_tui.tools.verdict import Build, Finding, Timing, Trial, Verdict


class IterationStarted(SessionEvent):
    type: Literal["iteration.started"] = "iteration.started"
    iteration: int
    subtask: str = ""
    attempt: int
    kind: Kind

    def applied_to(self, session: Session) -> Session:
        started = Iteration(number=self.iteration, subtask=self.subtask, attempt=self.attempt, kind=self.kind)
        grown = session.model_copy(update={"iterations": appended(session.iterations, started)})
        return with_subtask(grown, self.subtask, attempts=self.attempt) if self.subtask else grown


class CodeWritten(SessionEvent):
    """A candidate: journalled before its file is written, so that a kill makes it nobody else's."""

    type: Literal["code.written"] = "code.written"
    iteration: int
    subtask: str
    candidate: Candidate
    path: str

    def applied_to(self, session: Session) -> Session:
        return with_iteration(session, self.iteration, candidate=self.candidate)


class BuildFinished(SessionEvent):
    type: Literal["build.finished"] = "build.finished"
    iteration: int
    subtask: str
    build: Build


class CheckFinished(SessionEvent):
    type: Literal["check.finished"] = "check.finished"
    iteration: int
    subtask: str
    trials: tuple[Trial, ...]
    findings: tuple[Finding, ...] = ()


class TimingFinished(SessionEvent):
    type: Literal["timing.finished"] = "timing.finished"
    iteration: int
    subtask: str
    timing: Timing


class Profiled(SessionEvent):
    """Where a candidate's time goes; `profile.why` says which tool was asked and why."""

    type: Literal["profiled"] = "profiled"
    iteration: int
    subtask: str
    profile: Profile


class VerdictReached(SessionEvent):
    type: Literal["verdict"] = "verdict"
    iteration: int
    subtask: str
    verdict: Verdict
    outcome: Outcome

    def applied_to(self, session: Session) -> Session:
        judged = with_iteration(session, self.iteration, verdict=self.verdict, outcome=self.outcome)
        if not self.subtask:
            return judged.model_copy(update={"program": self.verdict})
        if self.outcome is not Outcome.KEPT:
            return judged
        if judged.host and self.subtask == judged.host.id:
            judged = judged.model_copy(update={"program": self.verdict})
        return with_subtask(judged, self.subtask, best=self.iteration)


class IterationEnded(SessionEvent):
    """An iteration that ends without a verdict of its own: cancelled, redirected, or a restore or seal."""

    type: Literal["iteration.ended"] = "iteration.ended"
    iteration: int
    outcome: Literal[Outcome.CANCELLED, Outcome.REDIRECTED, Outcome.KEPT]
    reason: str

    def applied_to(self, session: Session) -> Session:
        return with_iteration(session, self.iteration, outcome=self.outcome)


class Advised(SessionEvent):
    """The Verifier's diagnosis of an iteration, and the one change that it recommends."""

    type: Literal["advice"] = "advice"
    iteration: int
    subtask: str
    advice: Advice

    def applied_to(self, session: Session) -> Session:
        return with_iteration(session, self.iteration, advice=self.advice)


class Routed(SessionEvent):
    type: Literal["route"] = "route"
    subtask: str
    next: str
    reason: str


class CommitIntended(SessionEvent):
    """Announces the commit of an iteration, so that a resumed session can adopt it."""

    type: Literal["commit.intended"] = "commit.intended"
    iteration: int
    parent: str


class IterationCommitted(SessionEvent):
    type: Literal["iteration.committed"] = "iteration.committed"
    iteration: int
    sha: str
    subject: str

    def applied_to(self, session: Session) -> Session:
        told = session.model_copy(update={"undelivered": (), "tip": self.sha})
        return with_iteration(told, self.iteration, commit=self.sha)
