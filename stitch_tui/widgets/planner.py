"""The Planner pane: the subtasks, two lines each: state and title with the best speedup, then the share."""

from dataclasses import dataclass
from time import monotonic
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from stitch_tui.agents.state import Subtask, SubtaskState
from stitch_tui.plain_text import count, one_line
from stitch_tui.view.board import Board
from stitch_tui.view.wording import GLYPH, bar, headline, percent, tone

SETTLED_S = 0.4
"""A proposal must have been on screen this long before a key decides on it."""
PROGRAM = "program"
"""Id of the row that stands for the stitched whole."""
_BAR = 8
_STYLE = {
    "ask": "$waiting bold",
    "pass": "$gate-pass",
    "fail": "$gate-fail",
    "quiet": "$muted",
    "busy": "$accent bold",
    "plain": "$foreground",
}


class SubtaskList(OptionList):
    """The plan's rows; the highlighted one is what keys and the other panes are about."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", "Down", id="planner.down", show=False),
        Binding("k", "cursor_up", "Up", id="planner.up", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """Another row is highlighted."""

        subtask: str

    @dataclass
    class Opened(Message):
        """Enter or a click on a row: its details."""

        subtask: str

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._board = Board()
        self._drawn: dict[str, tuple[object, ...]] = {}
        self._since: dict[str, float] = {}
        self._width = 0

    @property
    def chosen(self) -> str:
        """Id of the highlighted subtask; empty: the program, or none."""
        if self.highlighted is None or self.highlighted >= self.option_count:
            return ""
        return _subtask_of(self.get_option_at_index(self.highlighted))

    def settled(self, subtasks: list[str]) -> bool:
        """Were these proposals on screen long enough to be decided on?"""
        now = monotonic()
        return all(now - self._since.get(id, now) >= SETTLED_S for id in subtasks)

    def update_from(self, board: Board) -> None:
        """Draw what changed; the highlight stays on its subtask."""
        self._board = board
        rows: list[Subtask | None] = [*board.session.subtasks]
        if board.attempts.get(""):
            rows.append(None)
        self._remember(board.session.subtasks)
        if [_id(row) for row in rows] != [option.id for option in self.options]:
            self._rebuild(rows)
            return
        for n, row in enumerate(rows):
            if (state := self._state(row)) != self._drawn.get(_id(row)):
                self._drawn[_id(row)] = state
                self.replace_option_prompt_at_index(n, self._prompt(row))

    def choose(self, subtask: str) -> None:
        """Highlight a subtask."""
        for n, option in enumerate(self.options):
            if _subtask_of(option) == subtask:
                self.highlighted = n

    def on_resize(self, event: events.Resize) -> None:
        if event.size.width != self._width:  # rows depend on the width alone
            self._width = event.size.width
            self._drawn.clear()
            self.update_from(self._board)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self.post_message(self.Chosen(_subtask_of(event.option)))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.post_message(self.Opened(_subtask_of(event.option)))

    def _remember(self, subtasks: tuple[Subtask, ...]) -> None:
        """Since when each proposal is on screen."""
        now = monotonic()
        proposed = {s.id for s in subtasks if s.state is SubtaskState.PROPOSED}
        self._since = {id: self._since.get(id, now) for id in proposed}

    def _rebuild(self, rows: list[Subtask | None]) -> None:
        chosen = self.chosen or PROGRAM
        self._drawn = {_id(row): self._state(row) for row in rows}
        self.set_options([Option(self._prompt(row), id=_id(row)) for row in rows])
        ids = [_id(row) for row in rows]
        if ids:
            self.highlighted = ids.index(chosen) if chosen in ids else 0

    def _state(self, subtask: Subtask | None) -> tuple[object, ...]:
        """What a row depends on; a change means to draw it again."""
        if subtask is None:
            return (self._board.session.program, len(self._board.attempts.get("", ())))
        return subtask.state, subtask.title, subtask.attempts, subtask.best, subtask.share, subtask.direction

    def _prompt(self, subtask: Subtask | None) -> Content:
        width = max(self.scrollable_content_region.width - 1, 16)
        if subtask is None:
            return self._whole(width)
        best = self._board.best(subtask.id)
        number = headline(best.verdict if best else None)
        style = _STYLE[tone(subtask.state)]
        title = _cut(f"{subtask.id} {one_line(subtask.title)}", width - 2 - len(number) - 1)
        first = Content.assemble(
            (f"{GLYPH[subtask.state]} ", style),
            (title.ljust(width - 2 - len(number)), "bold" if subtask.state.active else ""),
            (number, _number_style(number)),
        )
        return Content("\n").join([first, self._second(subtask, width)])

    def _whole(self, width: int) -> Content:
        """The row of the stitched program."""
        verdict = self._board.session.program
        number = headline(verdict)
        glyph, style, word = "◕", "$accent bold", "checking"
        if verdict:
            glyph, style = ("✓", "$gate-pass") if verdict.correct else ("✗", "$gate-fail")
            word = str(verdict.category).replace("_", " ")
        covered = self._board.session.coverage
        share = f"covers {percent(covered)}" if covered is not None else ""
        room = width - 4 - len(word) - len(share)
        return Content.assemble(
            (f"{glyph} ", style), ("the whole program".ljust(width - 2 - len(number)), "bold"),
            (number, _number_style(number)), ("\n  " + word, style.removesuffix(" bold")),
            (" " * max(room, 1), ""), (share, "$muted"),
        )  # fmt: skip

    def _second(self, subtask: Subtask, width: int) -> Content:
        tries = count(subtask.attempts, "try") if subtask.attempts else ""
        word = f"  {subtask.state}"
        share = subtask.share
        shown = f"{bar(share, _BAR)} {percent(share):>4}" if share is not None and width >= 34 else ""
        if share is not None and not shown and width >= 22:
            shown = f"{percent(share):>4}"
        gap = max(width - len(word) - len(tries) - len(shown) - 2, 1)
        return Content.assemble(
            (word, _STYLE[tone(subtask.state)].removesuffix(" bold")),
            ("  " + tries, "$muted"),
            (" " * gap, ""),
            (shown, "$cold" if share is None or share < 0.33 else "$hot"),
        )


def _id(row: Subtask | None) -> str:
    return row.id if row else PROGRAM


def _subtask_of(option: Option) -> str:
    return option.id if option.id and option.id != PROGRAM else ""


def _number_style(number: str) -> str:
    if not number.endswith("x"):
        return "$muted"
    return "$gain bold" if float(number[:-1]) > 1 else "$regression"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"
