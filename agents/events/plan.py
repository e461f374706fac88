"""The plan and its subtasks."""

from typing import Literal

from stitch_tui.agents.events.base import SessionEvent
from stitch_tui.agents.events.changes import with_subtask, without_stale_program
from stitch_tui.agents.state import Plan, Session, SubtaskState
from stitch_tui.tools.race import Race


class PlanProposed(SessionEvent):
    type: Literal["plan.proposed"] = "plan.proposed"
    plan: Plan

    def applied_to(self, session: Session) -> Session:
        return session.model_copy(update={"plan": self.plan})


class PlanUpdated(PlanProposed):
    type: Literal["plan.updated"] = "plan.updated"  # type: ignore[assignment]

    def applied_to(self, session: Session) -> Session:
        return without_stale_program(super().applied_to(session), session)


class PlanApproved(SessionEvent):
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


class SubtaskStarted(SessionEvent):
    type: Literal["subtask.started"] = "subtask.started"
    subtask: str
    title: str

    def applied_to(self, session: Session) -> Session:
        return with_subtask(session, self.subtask, state=SubtaskState.CODING)


class Raced(SessionEvent):
    """Variants of a subtask were timed beside each other: an order for attempts, and no verdict."""

    type: Literal["subtask.raced"] = "subtask.raced"
    subtask: str
    race: Race

    def applied_to(self, session: Session) -> Session:
        return with_subtask(session, self.subtask, race=self.race)


class SubtaskUpdated(SessionEvent):
    type: Literal["subtask.updated"] = "subtask.updated"
    subtask: str
    state: SubtaskState

    def applied_to(self, session: Session) -> Session:
        return with_subtask(session, self.subtask, state=self.state)


class SubtaskFinished(SessionEvent):
    type: Literal["subtask.finished"] = "subtask.finished"
    subtask: str
    state: Literal[SubtaskState.DONE, SubtaskState.SKIPPED, SubtaskState.FAILED]
    best: int | None = None
    reason: str = ""

    def applied_to(self, session: Session) -> Session:
        ended = with_subtask(session, self.subtask, state=self.state, best=self.best, reason=self.reason)
        return without_stale_program(ended, session)


class SubtaskReopened(SessionEvent):
    """Its best version turned out to make the program wrong: the work on it goes on without one."""

    type: Literal["subtask.reopened"] = "subtask.reopened"
    subtask: str
    reason: str

    def applied_to(self, session: Session) -> Session:
        reopened = session.model_copy(update={"program": None})
        return with_subtask(
            reopened, self.subtask, state=SubtaskState.APPROVED, best=None, reason=self.reason
        )
