"""The running session: its journal, its state, and whoever listens."""

from collections.abc import Callable

from pydantic_core import PydanticSerializationError

from stitch_tui.agents.events import Event, SessionFinished, Warned
from stitch_tui.agents.journal import Journal
from stitch_tui.agents.state import Session
from stitch_tui.tools.encodable import encodable_data
from stitch_tui.tools.redaction import has_secrets, holds_secret, redacted_data

Listener = Callable[[Event], None]


class Record:
    """Every change of a session goes through `emit`: journalled first, then folded, then shown.

    An event that holds a secret, or text that UTF-8 cannot hold, has it masked before anything else: so
    neither journal nor commits nor viewers ever see it.  A listener that fails hears no more, and the session
    goes on.
    """

    def __init__(self, journal: Journal, *listeners: Listener, session: Session | None = None) -> None:
        self._journal, self._listeners = journal, list(listeners)
        self.faults: list[Exception] = []
        """What listeners raised."""
        self.session = session or Session(id=journal.session)
        """The state so far; given when a session is resumed."""

    @property
    def seq(self) -> int:
        """Number of the last event."""
        return self._journal.seq

    def emit(self, event: Event, carry_out: Callable[[], None] = lambda: None) -> None:
        """Take the next event.

        Args:
            carry_out: does what the event says, once it is journalled and before anyone is told.
        """
        event = _writable(event)
        written = self._journal.append(event)
        self.session = written.applied_to(self.session)
        try:
            carry_out()
        finally:
            self._tell(written)

    def _tell(self, written: Event) -> None:
        failed = [fault for listener in list(self._listeners) if (fault := self._told(listener, written))]
        self.faults += failed
        if not isinstance(written, SessionFinished):  # nothing follows that
            for fault in failed:
                self.emit(Warned(text=f"the run goes on unheard: {type(fault).__name__}: {fault}"))

    def _told(self, listener: Listener, event: Event) -> Exception | None:
        """Have a listener hear an event; what kept it from that, and then it is none any more."""
        try:
            listener(event)
        except Exception as fault:
            self._listeners.remove(listener)
            return fault
        return None


def _writable(event: Event) -> Event:
    try:
        text = event.model_dump_json()
    except PydanticSerializationError:  # a foreign text holds half a character
        event = type(event).model_validate(encodable_data(event.model_dump()))
        text = event.model_dump_json()
    if has_secrets() and holds_secret(text):
        return type(event).model_validate(redacted_data(event.model_dump(mode="json")))
    return event
