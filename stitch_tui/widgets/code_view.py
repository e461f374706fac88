"""Code as a diff, drawn line by line: a line costs nothing before it is looked at, so streams stay fluid."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from stitch_tui.plain_text import printable
from stitch_tui.view.alignment import Row, pairs
from stitch_tui.view.highlighting import KINDS, Files, Highlights
from stitch_tui.view.listing import Fold, Item, Remark, fold_text, is_marked

TAB = "    "
SPLIT_CELLS = 110
"""Narrower views show one column, whatever was asked for."""
_SIGN_CELLS = 2
_GROUNDS = ("added", "removed", "mark", "fold")
_MARK = {"error": "✗", "warning": "!", "fact": "·", "file": "─"}
NONE = Files([])
"""The colours of no lines."""
Line = Item | tuple[Row | None, Row | None]


class CodeView(ScrollView, can_focus=True):
    """Draws rows of a diff with remarks between them.

    Its text comes from a model, compilers and files: it is never parsed as markup.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "code--gutter", "code--added", "code--removed", "code--mark", "code--fold",
        "code--error", "code--warning", "code--fact", "code--file", *(f"code--{kind}" for kind in KINDS),
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Down", id="coder.down", show=False),
        Binding("k", "scroll_up", "Up", id="coder.up", show=False),
        Binding("g", "scroll_home", "Top", id="coder.top", show=False),
        Binding("G", "scroll_end", "Bottom", id="coder.bottom", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._items: list[Item] = []
        self._lines: list[Line] = []
        self._new: Highlights | Files = NONE
        self._old: Highlights | Files = NONE
        self._split = False
        self._cells = 0
        self._compared = False
        self._digits = 3
        self._marked = -1
        self._styles: dict[str, Style] = {}

    # what is shown ---------------------------------------------------------------------------------

    def show(self, items: Iterable[Item], new: Highlights | Files, old: Highlights | Files = NONE) -> None:
        """Show these items of a diff, from the top, in the colours of both versions' lines."""
        self._items = list(items)
        self._new, self._old = new, old
        self._marked = -1
        self._arrange()
        self.scroll_to(0, 0, animate=False, immediate=True)

    def append(self, items: Sequence[Item]) -> None:
        """Add rows at the end; stays at the end if that is what was looked at."""
        follows = self.scroll_offset.y >= self.max_scroll_y
        self._items += items
        if self._is_split:
            self._arrange()
        else:
            self._lines += items
            self._measure(items)
            self._resize()
        if follows:
            self.scroll_to(y=self.max_scroll_y, animate=False, immediate=True, force=True)
        self.refresh()

    def forget(self, lines: int) -> None:
        """Let the first `lines` lines of the new version go, with all that stands above the next one.

        They have been removed from the list whose highlights `show` was given.
        """
        kept = next((n for n, i in enumerate(self._items) if isinstance(i, Row) and i.new > lines), None)
        top, before = self.scroll_offset.y, len(self._lines)
        self._items = self._items[kept:] if kept is not None else []
        if isinstance(self._new, Highlights):
            self._new.begin_at(lines)
        self._arrange()
        gone = before - len(self._lines)
        self._marked = max(self._marked - gone, -1)
        self.scroll_to(y=max(top - gone, 0), animate=False, immediate=True, force=True)

    def split(self, wanted: bool) -> None:
        """Two columns, where there is room for them, or one."""
        self._split = wanted
        self._arrange()

    @property
    def is_empty(self) -> bool:
        return not self._items

    @property
    def marked_line(self) -> int:
        """The line of the new version that hunks and faults were last moved to; 0: none."""
        if not 0 <= self._marked < len(self._lines):
            return 0
        line = self._lines[self._marked]
        row = next((part for part in line if part), None) if isinstance(line, tuple) else line
        if isinstance(row, Row):
            return row.new or row.old
        return row.line if isinstance(row, Remark) else 0

    def to_hunk(self, step: int) -> bool:
        """Go to the next (1) or previous (-1) change or fault; False: there is none."""
        starts = [n for n, line in enumerate(self._lines) if self._starts_hunk(n, line)]
        here = self._marked if self._marked >= 0 else int(self.scroll_offset.y) - (step > 0)
        wanted = [n for n in starts if (n > here if step > 0 else n < here)]
        if not wanted:
            return False
        self._mark(wanted[0] if step > 0 else wanted[-1])
        return True

    def to_line(self, line: int) -> bool:
        """Go to a line of the new version; False: it is not shown."""
        for n, shown in enumerate(self._lines):
            row = shown[1] if isinstance(shown, tuple) else shown
            if isinstance(row, Row) and row.new == line:
                self._mark(n)
                return True
        return False

    def _starts_hunk(self, n: int, line: Line) -> bool:
        return _changed(line) and not (n and _changed(self._lines[n - 1]))

    def _mark(self, n: int) -> None:
        self._marked = n
        self.scroll_to(y=max(n - self.size.height // 3, 0), animate=False, immediate=True)
        self.refresh()

    # arranging -------------------------------------------------------------------------------------

    @property
    def _is_split(self) -> bool:
        return self._split and self.size.width >= SPLIT_CELLS

    def on_resize(self) -> None:
        if self._split:
            self._arrange()

    def _arrange(self) -> None:
        self._lines = _paired(self._items) if self._is_split else list(self._items)
        self._cells, self._digits, self._compared = 0, 3, False
        self._measure(self._items)
        self._resize()
        self.refresh()

    def _measure(self, items: Iterable[Item]) -> None:
        for item in items:
            if isinstance(item, Row):
                text = item.text
                cells = len(text) if text.isascii() else cell_len(text)
                self._cells = max(self._cells, cells + text.count("\t") * (len(TAB) - 1))
                self._compared = self._compared or item.old > 0 or item.sign == "+"
                self._digits = max(self._digits, len(str(max(item.old, item.new))))

    def _resize(self) -> None:
        gutter = self._number_cells + _SIGN_CELLS
        width = self.size.width if self._is_split else self._cells + gutter + 1
        size = Size(width, len(self._lines))
        if size != self.virtual_size:
            self.virtual_size = size

    @property
    def _number_cells(self) -> int:
        """Cells of the line numbers: of both versions, or of one where there is no other."""
        return (self._digits + 1) * (2 if self._compared else 1)

    # drawing ---------------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles.clear()

    def render_line(self, y: int) -> Strip:
        left, top = self.scroll_offset
        n, width = top + y, self.size.width
        if n >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        strip = self._strip(self._lines[n], width, left)
        return strip.apply_style(self._style("mark")) if n == self._marked else strip

    def _strip(self, line: Line, width: int, left: int) -> Strip:
        if isinstance(line, tuple):
            half = width // 2
            bar = Strip([Segment("│", self.rich_style + self._style("gutter"))])
            left_half = self._half(line[0], half - 1, old=True)
            return Strip.join([left_half, bar, self._half(line[1], width - half, old=False)])
        if isinstance(line, Row):
            return self._row(line, width, left)
        if isinstance(line, Fold):
            text = f"{'':{self._number_cells}}⋯ {fold_text(line)}"
            return Strip([Segment(text, self._style("fold"))]).adjust_cell_length(width, self._style("fold"))
        return self._remark(line, width)

    def _row(self, row: Row, width: int, left: int) -> Strip:
        ground = self._ground(row)
        shown = (row.old, row.new) if self._compared else (row.new,)
        numbers = "".join(f"{n or '':>{self._digits}} " for n in shown)
        gutter = Strip([Segment(numbers + row.sign + " ", self.rich_style + self._style("gutter") + ground)])
        code = self._code(row, ground).crop(left, left + max(width - gutter.cell_length, 0))
        return Strip.join([gutter, code]).adjust_cell_length(width, self.rich_style + ground)

    def _half(self, row: Row | None, width: int, *, old: bool) -> Strip:
        if row is None:
            return Strip.blank(width, self.rich_style)
        ground = self._ground(row)
        number = row.old if old else row.new
        style = self.rich_style + self._style("gutter") + ground
        gutter = Strip([Segment(f"{number or '':>{self._digits}} {row.sign} ", style)])
        code = self._code(row, ground).crop(0, max(width - gutter.cell_length, 0))
        return Strip.join([gutter, code]).adjust_cell_length(width, self.rich_style + ground)

    def _remark(self, remark: Remark, width: int) -> Strip:
        style = self._style(remark.kind)
        indent = " " * self._number_cells
        where = "" if remark.line or remark.kind == "file" else "(no line) "
        first = remark.text.split("\n")[0]
        text = printable(f"{indent}{_MARK[remark.kind]} {where}{first}").replace("\t", " ")
        base = self.rich_style + style
        return Strip([Segment(text, base)]).adjust_cell_length(width, base)

    def _code(self, row: Row, ground: Style) -> Strip:
        """The line's text in colours; removed lines are coloured as in the earlier version."""
        base = self.rich_style + ground
        removed = row.sign == "-"
        number = row.old + row.shift[0] if removed else row.new + row.shift[1]
        spans = (self._old if removed else self._new).line(number - 1) if number > 0 else []
        segments, at = [], 0
        for begin, end, kind in spans:
            segments.append(Segment(_safe(row.text[at:begin]), base))
            segments.append(Segment(_safe(row.text[begin:end]), base + self._style(kind)))
            at = end
        segments.append(Segment(_safe(row.text[at:]), base))
        return Strip([segment for segment in segments if segment.text])

    def _ground(self, row: Row) -> Style:
        if row.sign == " ":
            return Style.null()
        return self._style("added" if row.sign == "+" else "removed")

    def _style(self, name: str) -> Style:
        if name not in self._styles:
            style = self.get_component_rich_style(f"code--{name}", partial=True)
            if name not in _GROUNDS:
                style = style.without_color + Style(color=style.color)
            self._styles[name] = style
        return self._styles[name]


def _changed(line: Line) -> bool:
    if isinstance(line, tuple):
        return any(row is None or row.sign != " " for row in line)
    return is_marked(line)


def _paired(items: Sequence[Item]) -> list[Line]:
    """Rows side by side, with remarks and folds over the whole width between them."""
    lines: list[Line] = []
    run: list[Row] = []
    for item in items:
        if isinstance(item, Row):
            run.append(item)
        else:
            lines += pairs(run)
            lines.append(item)
            run = []
    return lines + list(pairs(run))


def _safe(text: str) -> str:
    """`text` without characters that steer a terminal, tabs as blanks."""
    if text.isascii() and text.isprintable():
        return text
    return printable(text.replace("\t", TAB))
