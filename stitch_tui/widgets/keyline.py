"""The footer: the keys that work now, in one line that is drawn at once; a click presses the key."""

from textual import events
from textual.binding import Binding
from textual.content import Content, Span
from textual.style import Style
from textual.widgets import Static


class KeyLine(Static):
    """Follows the screen's bindings; one widget, where Textual's footer mounts one for each key.

    Where there is no room for all, those of the app (leave, help) stay.
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self._draw())

    def on_resize(self) -> None:
        self._draw()

    def on_click(self, event: events.Click) -> None:
        if key := event.style.meta.get("key"):
            self.app.simulate_key(key)

    def _draw(self) -> None:
        if not (self.is_attached and self.screen.is_mounted and self.screen.is_current):
            return
        own: dict[str, Content] = {}
        everywhere: dict[str, Content] = {}
        for active in self.screen.active_bindings.values():
            binding = active.binding
            if binding.show and active.enabled and binding.action not in own:
                (everywhere if active.node is self.app else own)[binding.action] = self._entry(binding)
        room = self.size.width - sum(entry.cell_length for entry in everywhere.values())
        shown = []
        for entry in own.values():
            room -= entry.cell_length
            if room < 0:
                break
            shown.append(entry)
        self.update(Content("").join([*shown, *everywhere.values()]))

    def _entry(self, binding: Binding) -> Content:
        key = self.app.get_key_display(binding)
        entry = Content.assemble((f" {key}", "$accent bold"), (f" {binding.description} ", "$muted"))
        meta = Style.from_meta({"key": binding.key})
        return Content(entry.plain, [*entry.spans, Span(0, len(entry), meta)])
