"""Keys in the order in which they were pressed, also where one moves the focus or has a priority binding.

Textual hands a key to the widget that has the focus when it arrives.  One that nobody there wants climbs
from parent to parent to the app, while the next may go to another widget, or be bound with priority, and be
done first: what was typed would be sent without its last letters.
"""

from collections import deque

from textual.app import App
from textual.events import Event, Key
from textual.message import Message
from textual.message_pump import MessagePump
from textual.timer import Timer

LONGEST_S = 0.25
"""Keys are held back no longer, whatever became of the widget that earlier ones were given to."""


class Passed(Message):
    """Climbs behind the keys that a widget was given: they have all been through."""


class KeysInOrder(App[None]):
    """Holds a key back, where that may matter, until those before it have come to their end."""

    def __init__(self) -> None:
        super().__init__()
        self._given_to: MessagePump | None = None
        """Who got the last key; None: it is known to have come to its end."""
        self._held: deque[Key] = deque()
        self._fallback: Timer | None = None

    async def on_event(self, event: Event) -> None:
        if not isinstance(event, Key) or event.is_forwarded:
            await super().on_event(event)
        elif self._held or not self._may_go(event):
            self._held.append(event)
            self._wait()
        else:
            await self._give(event)

    def _may_go(self, key: Key) -> bool:
        """Letters for the same widget stay in order by themselves."""
        return self._given_to is None or (key.is_printable and self._given_to is self._next_target)

    async def _give(self, key: Key) -> None:
        self._given_to = self._next_target
        await super().on_event(key)

    def _wait(self) -> None:
        if self._fallback is None:
            self._fallback = self.set_timer(LONGEST_S, self.on_passed)
            if self._given_to is not None:
                self._given_to.post_message(Passed())

    async def on_passed(self) -> None:
        """All that was given has come to its end."""
        if self._fallback is not None:
            self._fallback.stop()
        self._given_to = self._fallback = None
        while self._held and self._may_go(self._held[0]):
            await self._give(self._held.popleft())
        if self._held:
            self._wait()

    @property
    def _next_target(self) -> MessagePump:
        return self.focused or self.screen
