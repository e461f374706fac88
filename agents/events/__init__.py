"""Every event of a session.  The journal, the socket and ``--json`` all carry these lines.

One object a line: ``{"v": 1, "seq": n, "time": ISO 8601, "session": id, "type": ..., ...}``.  A
session's state is `fold` over its events; nothing else changes it.  `agents.schema` generates
``docs/events.schema.json``.
"""

from stitch_tui.agents.events.base import VERSION
from stitch_tui.agents.events.conversation import (
    Citation,
    CoderDelta,
    Exchanged,
    ModelWaits,
    Retrieved,
    UsageCounted,
)
from stitch_tui.agents.events.folding import Folding, fold
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
from stitch_tui.agents.events.line import Event, parse
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

__all__ = [
    "VERSION",
    "Advised",
    "BuildFinished",
    "CheckFinished",
    "Citation",
    "CodeWritten",
    "CoderDelta",
    "CommitIntended",
    "Decision",
    "Event",
    "Exchanged",
    "Failed",
    "Folding",
    "IterationCommitted",
    "IterationEnded",
    "IterationStarted",
    "ModelWaits",
    "PlanApproved",
    "PlanProposed",
    "PlanUpdated",
    "Profiled",
    "Raced",
    "ReferenceProfiled",
    "Retrieved",
    "Routed",
    "SessionFinished",
    "SessionResumed",
    "SessionStarted",
    "SubtaskFinished",
    "SubtaskReopened",
    "SubtaskStarted",
    "SubtaskUpdated",
    "TimingFinished",
    "UsageCounted",
    "VerdictReached",
    "Warned",
    "fold",
    "parse",
]
