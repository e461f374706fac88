"""What every event has: its place in the session, and what it does to the state."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from stitch_tui.agents.state import Session

VERSION: Literal[1] = 1


class SessionEvent(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    v: Literal[1] = VERSION
    seq: int = 0
    """Position in the session, from 1; the journal assigns it."""
    time: datetime | None = None
    session: str = ""

    def applied_to(self, session: Session) -> Session:
        """The state after this event; most events carry detail and leave it as it is."""
        return session
