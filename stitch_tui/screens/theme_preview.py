"""Themes side by side with what they colour: the one under the cursor is worn at once."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from stitch_tui import themes
from stitch_tui.view.alignment import diff
from stitch_tui.view.highlighting import Highlights
from stitch_tui.view.listing import Remark, with_remarks
from stitch_tui.widgets.code_view import CodeView
from stitch_tui.widgets.keyline import KeyLine

_OLD = """\
#include "stitch.h"
__global__ void scale(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * 0.5f;  // one element a thread
}"""
_NEW = """\
#include "stitch.h"
__global__ void scale(const float4* x, float4* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 4) out[i] = half_of(x[i]);  // four elements a thread
}"""
_SAID = [Remark("fact", 2, "ptxas: 16 registers, no spills"), Remark("error", 4, "half_of is undefined")]


class ThemeScreen(Screen[None]):
    """Esc goes back to the theme that was worn before."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "Back", id="themes.back"),
        Binding("enter", "take", "Take", id="themes.take"),
    ]
    CSS = """
    ThemeScreen OptionList { width: 30; height: 1fr; }
    ThemeScreen #samples { height: auto; padding: 1 2; }
    ThemeScreen CodeView { height: 1fr; margin: 0 2; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._before = ""

    def compose(self) -> ComposeResult:
        yield Static(Content(" Themes: Enter takes one, Esc keeps the old one"), classes="page-title")
        labels = {palette.name: palette.label for palette in themes.builtin()}
        names = sorted(self.app.available_themes, key=lambda name: (name not in labels, name))
        with Horizontal():
            yield OptionList(
                *(Option(_row(name, labels.get(name, "")), id=name) for name in names), markup=False
            )
            with Vertical():
                yield Static(_samples(), id="samples", markup=False)
                yield CodeView(id="sample-code")
        yield KeyLine()

    def on_mount(self) -> None:
        self._before = self.app.theme
        old, new = _OLD.split("\n"), _NEW.split("\n")
        self.query_one(CodeView).show(with_remarks(diff(old, new), _SAID), Highlights(new), Highlights(old))
        options = self.query_one(OptionList)
        options.highlighted = next(
            (n for n, option in enumerate(options.options) if option.id == self._before), 0
        )
        options.focus()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_id:
            self.app.theme = event.option_id

    def on_option_list_option_selected(self) -> None:
        self.action_take()

    def action_take(self) -> None:
        self.app.notify(f"to keep it: stitch config set ui.theme {self.app.theme}", timeout=6, markup=False)
        self.app.pop_screen()

    def action_back(self) -> None:
        self.app.theme = self._before
        self.app.pop_screen()


def _row(name: str, label: str) -> Content:
    return Content.assemble(name, (f"\n  {label}", "$muted")) if label else Content(name)


def _samples() -> Content:
    rows = (
        ("$gain bold", "1.42x faster"), ("$regression", "0.97x slower"), ("$gate-pass", "✓ correct"),
        ("$gate-fail", "✗ numerics"), ("$waiting bold", "? proposed"), ("$accent bold", "◉ measuring"),
        ("$hot", "█████ hot"), ("$cold", "██ cold"), ("$muted", "muted"),
    )  # fmt: skip
    return Content("   ").join(Content.styled(text, style) for style, text in rows)
