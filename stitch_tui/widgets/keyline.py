"""The footer: the keys that work now, in one line that is drawn at once; a click presses the key."""

from textual import events
from textual.content import Content, Span
from textual.style import Style
from textual.widgets import Static


class KeyLine(Static):
    """Follows the screen's bindings; one widget, where Textual's footer mounts one for each key."""

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
        shown: dict[str, Content] = {}
        room = self.size.width
        for active in self.screen.active_bindings.values():
            binding = active.binding
            if not binding.show or not active.enabled or binding.action in shown:
                continue
            key = self.app.get_key_display(binding)
            entry = Content.assemble((f" {key}", "$accent bold"), (f" {binding.description} ", "$muted"))
            if room < entry.cell_length:
                break
            room -= entry.cell_length
            meta = Style.from_meta({"key": binding.key})
            shown[binding.action] = Content(entry.plain, [*entry.spans, Span(0, len(entry), meta)])
        self.update(Content("").join(shown.values()))
