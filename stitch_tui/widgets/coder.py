"""The Coder pane: live code against the best or the previous version, with what is known of its lines."""

from dataclasses import dataclass, replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from stitch_tui.agents.state import Iteration
from stitch_tui.plain_text import count, one_line
from stitch_tui.tools.cuda_source import CudaSource
from stitch_tui.tools.iteration import Outcome
from stitch_tui.view.alignment import Alignment, changed, diff, plain
from stitch_tui.view.board import Board, Stream
from stitch_tui.view.highlighting import Files, Grammar, Highlights, grammar_of
from stitch_tui.view.listing import Item, Remark, folded, remarks, with_remarks
from stitch_tui.view.wording import iteration_title
from stitch_tui.widgets.code_view import NONE, CodeView

AGAINST = ("best", "previous", "nothing")
"""What code is compared with, in the order of the key that changes it."""
_DRAIN = 4000
"""Streamed lines that are drawn at once; the rest waits for the next time."""


@dataclass(frozen=True)
class _Shown:
    """What a finished picture depends on."""

    number: int
    against: str
    judged: bool
    built: bool
    folded: bool


class CoderPane(Vertical):
    """Shows the candidate of one subtask."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "d", "against", "Against", id="coder.against", tooltip="Compare with best, previous, nothing."
        ),
        Binding("t", "style", "Split", id="coder.style", tooltip="One column or two."),
        Binding("z", "fold", "Fold", id="coder.fold", tooltip="Hide or show unchanged lines.", show=False),
        Binding("right_square_bracket", "hunk(1)", "Next change", key_display="]", id="coder.next"),
        Binding(
            "left_square_bracket", "hunk(-1)", "Previous", key_display="[", id="coder.previous", show=False
        ),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._against, self._split, self._folds = AGAINST[0], True, False
        self._shown: _Shown | tuple[int, ...] | None = None
        """What the picture depends on; of the program, the numbers of its iterations."""
        self._stream: Stream | None = None
        self._alignment = Alignment(())
        self._taken = self._first = 0
        """Lines of the stream that are drawn, and those of them that were let go again."""
        self._lines: list[str] = []
        self._last: tuple[Board, str, Iteration | None] | None = None

    def compose(self) -> ComposeResult:
        yield CodeView(id="code")
        yield Static(id="code-status", markup=False)

    def on_mount(self) -> None:
        self.code.split(self._split)

    @property
    def code(self) -> CodeView:
        return self.query_one("#code", CodeView)

    @property
    def text(self) -> str:
        """The code that is shown."""
        return "\n".join(self._lines)

    def update_from(self, board: Board, subtask: str, pinned: Iteration | None = None) -> None:
        """Show what the Coder writes for `subtask`, else its latest or the pinned iteration's code."""
        self._last = board, subtask, pinned
        stream = board.stream
        if pinned is None and not stream.finished and stream.subtask == subtask:
            self._follow(board, stream)
            return
        self._stream = None
        if not subtask and pinned is None and board.attempts.get(""):
            self._whole(board)
            return
        iteration = pinned or self._newest(board, subtask)
        if iteration is None:
            self._empty(board)
            return
        build = board.build_of(iteration)
        judged = iteration.verdict is not None
        shown = _Shown(iteration.number, self._against, judged, build is not None, self._folds)
        if shown != self._shown:
            self._shown = shown
            self._picture(board, iteration)

    # a finished candidate --------------------------------------------------------------------------

    def _newest(self, board: Board, subtask: str) -> Iteration | None:
        """The latest iteration of a subtask that has code."""
        return next((i for i in reversed(board.iterations_of(subtask)) if i.candidate), None)

    def _picture(self, board: Board, iteration: Iteration) -> None:
        assert iteration.candidate
        source = iteration.candidate.source
        base = self._base(board, iteration)
        self._lines = source.split("\n")
        old = base.candidate.source.split("\n") if base and base.candidate else []
        rows = diff(old, self._lines) if old else plain(self._lines)
        kernels = {f.name: f.first_line for f in CudaSource(source).kernels}
        said = remarks(iteration.verdict, board.build_of(iteration), kernels)
        items = list(with_remarks(rows, said))
        shown, language = folded(items) if self._folds else items, self._language(board, iteration.subtask)
        self.code.show(shown, Highlights(self._lines, language), Highlights(old, language))
        first = next((r.line for r in said if r.kind == "error" and r.line), 0)
        if first:
            self.code.to_line(first)
        elif old:
            self.code.to_hunk(1)
        new, gone = changed(rows)
        compared = f" against #{base.number}  +{new} -{gone}" if base else ""
        self._say(f"{iteration_title(iteration)}{compared}", iteration.candidate.strategy)

    def _whole(self, board: Board) -> None:
        """The program: its kernels, and a host program of a Coder's, one after the other."""
        best = [found for s in board.session.subtasks if (found := board.best(s.id)) and found.candidate]
        shown = tuple(iteration.number for iteration in best)
        if shown == self._shown:
            return
        self._shown, self._lines = shown, []
        items: list[Item] = []
        files: list[tuple[str, list[str]]] = []
        for iteration in best:
            assert iteration.candidate
            name = board.session.subtask(iteration.subtask).file
            lines = iteration.candidate.source.split("\n")
            items.append(Remark("file", 0, f"{name}  {iteration.candidate.strategy}"))
            items += [replace(row, shift=(0, len(self._lines))) for row in plain(lines)]
            files.append((name, lines))
            self._lines += lines
        self.code.show(items, Files(files))
        self._say("the whole program", count(len(best), "file"))

    def _base(self, board: Board, iteration: Iteration) -> Iteration | None:
        """The iteration that this one is compared with."""
        if self._against == "nothing":
            return None
        earlier = [i for i in board.iterations_of(iteration.subtask) if i.number < iteration.number]
        earlier = [i for i in earlier if i.candidate]
        kept = [i for i in earlier if i.outcome is Outcome.KEPT]
        chosen = kept if self._against == "best" and kept else earlier
        return chosen[-1] if chosen else None

    def _empty(self, board: Board) -> None:
        if self._shown is None and not self.code.is_empty:
            return
        self._shown, self._lines = None, []
        if not self.code.is_empty:
            self.code.show([], NONE)
        asked = ": approve, edit or reject what is marked ?" if board.proposed else ""
        self._say("no code yet", f"{board.phase}{asked}")

    # a stream --------------------------------------------------------------------------------------

    def _follow(self, board: Board, stream: Stream) -> None:
        if stream is not self._stream or self._taken < stream.dropped:
            base = board.best(stream.subtask) if self._against != "nothing" else None
            old = base.candidate.source.split("\n") if base and base.candidate else []
            self._stream, self._shown = stream, None
            self._alignment, self._lines = Alignment(old, stream.dropped), []
            self._first = self._taken = stream.dropped
            language = self._language(board, stream.subtask)
            self.code.show([], Highlights(self._lines, language, complete=False), Highlights(old, language))
            self.code.forget(self._first)
        if stream.dropped > self._first:
            del self._lines[: stream.dropped - self._first]
            self._first = stream.dropped
            self.code.forget(self._first)
        begin = self._taken - stream.dropped
        fresh = stream.lines[begin : begin + _DRAIN]
        if not fresh:
            return
        self._taken += len(fresh)
        self._lines += fresh
        self.code.append([row for line in fresh for row in self._alignment.add(line)])
        self._say(f"{stream.subtask} is written", f"{self._taken:,} lines")

    def _language(self, board: Board, subtask: str) -> Grammar | None:
        """That of a subtask's candidates."""
        return grammar_of(board.session.subtask(subtask).file)

    def _say(self, left: str, right: str) -> None:
        status = Content.assemble(
            (one_line(left), "bold"), (f"  {one_line(right)}", "$muted"),
        )  # fmt: skip
        self.query_one("#code-status", Static).update(status)

    # keys ------------------------------------------------------------------------------------------

    def action_against(self) -> None:
        self._against = AGAINST[(AGAINST.index(self._against) + 1) % len(AGAINST)]
        self._again()
        self.notify(f"compared with: {self._against}", timeout=2, markup=False)

    def action_style(self) -> None:
        self._split = not self._split
        self.code.split(self._split)

    def action_fold(self) -> None:
        self._folds = not self._folds
        self._again()

    def action_hunk(self, step: int) -> None:
        if not self.code.to_hunk(step):
            self.notify("no more changes", timeout=2, markup=False)

    def _again(self) -> None:
        self._shown = self._stream = None
        if self._last:
            self.update_from(*self._last)
