"""State is a fold over events."""

from collections.abc import Iterable

from stitch_tui.agents.events.changes import Growing
from stitch_tui.agents.events.line import Event
from stitch_tui.agents.state import Session


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
        self.session = session.model_copy(update={"iterations": Growing(session.iterations)})

    def add(self, event: Event) -> None:
        """Take the next event."""
        self.session = event.applied_to(self.session)
