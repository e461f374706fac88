"""The palette: everything that can be done where it was opened, with its command and its key."""

from collections.abc import Awaitable, Callable
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider

from stitch_tui.screens.session import SessionScreen
from stitch_tui.view.orders import ENTRIES, Entry


class Orders(Provider):
    """What ``/`` commands do, by name or by what they say of themselves."""

    async def discover(self) -> Hits:
        for entry in self._entries:
            yield DiscoveryHit(entry.text, self._doing(entry), text=entry.text, help=self._help(entry))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for entry in self._entries:
            score = matcher.match(f"{entry.name} {entry.text}")
            if score:
                shown = matcher.highlight(f"{entry.name} {entry.text}")
                yield Hit(score, shown, self._doing(entry), help=self._help(entry))

    @property
    def _entries(self) -> list[Entry]:
        if isinstance(self.screen, SessionScreen):
            return list(ENTRIES)
        return [entry for entry in ENTRIES if entry.action and hasattr(self.app, f"action_{entry.action}")]

    def _help(self, entry: Entry) -> str:
        """``/skip [ID] [WHY]  key s``, as the markup that Textual reads it as."""
        keys = [
            self.app.get_key_display(active.binding)
            for active in self.screen.active_bindings.values()
            if active.enabled and active.binding.action.removeprefix("app.") == entry.pressed
        ]
        command = f"/{entry.name} {entry.words}".rstrip()
        shown = f"{command}  key {' or '.join(keys)}" if keys else command
        return shown.replace("[", r"\[")  # escape() leaves [ID] as it is

    def _doing(self, entry: Entry) -> Callable[[], Awaitable[None]]:
        return partial(self._do, entry)

    async def _do(self, entry: Entry) -> None:
        """What the command does; one that needs words goes into the composer."""
        screen = self.screen
        if not isinstance(screen, SessionScreen):
            await self.app.run_action(entry.action)
        elif entry.action:
            await screen.act(entry.action, "")
        elif entry.words:
            screen.composer.put(f"/{entry.name} ")
        else:
            await screen.submit(f"/{entry.name}")
