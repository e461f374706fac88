"""One event on one line of JSON."""

from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter

from stitch_tui.agents.events.conversation import CoderDelta, Exchanged, ModelWaits, Retrieved, UsageCounted
from stitch_tui.agents.events.iteration import (
    Advised,
    BuildFinished,
    CheckFinished,
    CodeWritten,
    CommitIntended,
    IterationCommitted,
    IterationEnded,
    IterationStarted,
    Profiled,
    Routed,
    TimingFinished,
    VerdictReached,
)
from stitch_tui.agents.events.plan import (
    PlanApproved,
    PlanProposed,
    PlanUpdated,
    Raced,
    SubtaskFinished,
    SubtaskReopened,
    SubtaskStarted,
    SubtaskUpdated,
)
from stitch_tui.agents.events.session import (
    Decision,
    Failed,
    ReferenceProfiled,
    SessionFinished,
    SessionResumed,
    SessionStarted,
    Warned,
)

Event = Annotated[
    SessionStarted
    | SessionResumed
    | ReferenceProfiled
    | PlanProposed
    | PlanUpdated
    | PlanApproved
    | SubtaskStarted
    | Raced
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
