"""What roles are asked, shown and answered: requests to models, and the documentation."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from stitch_tui.agents.chat.message import Message, Usage
from stitch_tui.agents.events.base import SessionEvent
from stitch_tui.agents.state import Session


class CoderDelta(SessionEvent):
    """Streamed text; passes unjournalled and unnumbered."""

    type: Literal["coder.delta"] = "coder.delta"
    subtask: str
    text: str


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


class Retrieved(SessionEvent):
    """What was looked up in the local documentation for a role, and what it was shown."""

    type: Literal["retrieval"] = "retrieval"
    role: str
    subtask: str = ""
    reason: Literal["build error", "asked"]
    query: str
    citations: tuple[Citation, ...] = ()

    @property
    def asked(self) -> str:
        """``looked up 'cudaMalocHost'``."""
        return f"looked up {self.query!r}"

    @property
    def sentence(self) -> str:
        """``looked up 'cudaMalocHost': cudaMallocHost (runtime 13.0, cuda_runtime_api.h:4583)``."""
        shown = [citation.sentence for citation in self.citations]
        return f"{self.asked}: {'; '.join(shown) or 'nothing was found'}"


class Exchanged(SessionEvent):
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


class UsageCounted(SessionEvent):
    type: Literal["usage"] = "usage"
    role: str
    model: str
    usage: Usage

    def applied_to(self, session: Session) -> Session:
        known = session.usage.get(self.role)
        usage = {**session.usage, self.role: known + self.usage if known else self.usage}
        return session.model_copy(update={"usage": usage})


class ModelWaits(SessionEvent):
    """A model's endpoint failed, and is asked again after a pause."""

    type: Literal["model.waiting"] = "model.waiting"
    role: str
    reason: str
    seconds: float
    """Until the next attempt, from this event's time."""
    attempt: int
    """The one that failed, from 1."""
    attempts: int
    """Most that are made after the first."""

    @property
    def sentence(self) -> str:
        """``coder: rate limit: 429; again in 5 s (attempt 2 of 6)``: the attempt that is to come."""
        tries = f"attempt {self.attempt + 1} of {self.attempts + 1}"
        return f"{self.role}: {self.reason}; again in {self.seconds:.0f} s ({tries})"
