"""The session itself: how it starts, what is known of its reference, what a human decides, how it ends."""

from typing import Any, Literal

from pydantic import Field

from stitch_tui.agents.events.base import SessionEvent
from stitch_tui.agents.events.changes import with_subtask, with_versions_of
from stitch_tui.agents.state import Session, Status
from stitch_tui.tools.profiling.profile import Trace


class SessionStarted(SessionEvent):
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
    options: dict[str, Any] = Field(default={})
    """Settings of the reference that verdicts depend on: mode, dtype, precision."""
    autonomy: str = ""
    roles: dict[str, str] = Field(default={})
    """Planner, coder and verifier: ``builtin`` or the model's name."""

    def applied_to(self, session: Session) -> Session:
        names = ("reference", "device", "branch", "base", "tip", "target", "options", "autonomy")
        fields = {name: getattr(self, name) for name in names}
        return session.model_copy(update={"id": self.session, **fields})


class SessionResumed(SessionEvent):
    """An engine took up a session that had ended, or whose engine was killed."""

    type: Literal["session.resumed"] = "session.resumed"
    device: str
    autonomy: str = ""

    def applied_to(self, session: Session) -> Session:
        taken_up = {"status": Status.RUNNING, "reason": "", "autonomy": self.autonomy or session.autonomy}
        return session.model_copy(update=taken_up)


class ReferenceProfiled(SessionEvent):
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


class Decision(SessionEvent):
    """What a human decided; the next commit says so in its trailer ``Stitch-Decision``."""

    type: Literal["decision"] = "decision"
    who: str
    action: str
    subtask: str = ""
    text: str = ""
    iteration: int | None = None
    """Of a restore: the iteration that holds the best from now on, of the subtask or of the whole program."""
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
            return with_subtask(decided, self.subtask, direction=self.text)
        if self.action == "restore" and self.subtask:
            return with_subtask(decided, self.subtask, best=self.iteration)
        if self.action == "restore" and self.iteration:
            return with_versions_of(decided, self.iteration)
        return decided


class Warned(SessionEvent):
    type: Literal["warning"] = "warning"
    text: str


class Failed(SessionEvent):
    type: Literal["error"] = "error"
    kind: str
    """Class of the error, ``ReferenceFault``."""
    text: str
    retryable: bool = False
    exit_code: int


class SessionFinished(SessionEvent):
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
