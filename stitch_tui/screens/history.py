"""History: a session's iterations from git alone; compare any two, restore, apply, export."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import DataTable, Static

from stitch_tui.plain_text import count, one_line, printable
from stitch_tui.tools.errors import StitchError
from stitch_tui.tools.history import Commit, History
from stitch_tui.tools.history.history import Part
from stitch_tui.tools.history.read import Session
from stitch_tui.view import versions
from stitch_tui.view.highlighting import Files
from stitch_tui.view.listing import folded
from stitch_tui.view.wording import times
from stitch_tui.widgets.ask import AskBar, Choice
from stitch_tui.widgets.code_view import CodeView
from stitch_tui.widgets.keyline import KeyLine

COLUMNS = ("#", "subtask", "outcome", "speedup", "time", "what")
NUMBERS = {"speedup", "time"}
"""Columns that stand at the right."""
T = TypeVar("T")
Restore = Callable[[int], None]


class HistoryScreen(Screen[None]):
    """Needs no engine and no ``.stitch/``: it works on any clone.

    Args:
        session: the one to show; empty: the latest.
        restore: has the engine go on from an iteration; None: no engine runs, restoring makes a commit.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Back", id="history.back"),
        Binding("m", "mark", "Mark", id="history.mark", tooltip="Compare others with this one."),
        Binding(
            "w", "restore", "Restore", id="history.restore", tooltip="Code, plan or both, as a new commit."
        ),
        Binding("a", "apply", "Apply", id="history.apply", tooltip="stitched/ into your working tree."),
        Binding("x", "export", "Export", id="history.export", tooltip="The bundle into a folder."),
        Binding("s", "session", "Session", id="history.session", tooltip="The next session."),
        Binding("z", "fold", "Fold", id="history.fold", tooltip="All lines, or those near changes."),
        Binding("right_square_bracket", "hunk(1)", "Next change", key_display="]", id="history.next"),
        Binding("left_square_bracket", "hunk(-1)", key_display="[", id="history.previous", show=False),
        Binding("tab", "switch", "Switch", id="history.switch", show=False),
        Binding("y", "app.copy", "Copy", id="history.copy", show=False),
    ]

    def __init__(self, history: History, session: str, restore: Restore | None) -> None:
        super().__init__()
        self._history, self._session, self._restore = history, session, restore
        self._sessions: list[Session] = []
        self._commits: list[Commit] = []
        self._best: Commit | None = None
        self._marked: Commit | None = None
        self._shown: versions.Differences | None = None
        self._folds = True

    def compose(self) -> ComposeResult:
        yield Static(id="title", classes="page-title", markup=False)
        with Horizontal(id="body"):
            with Vertical(id="list", classes="pane"):
                yield DataTable[Text](id="commits", cursor_type="row")
                yield Static(id="about", markup=False)
            with Vertical(id="changes", classes="pane"):
                yield CodeView(id="code")
        yield AskBar(id="ask")
        yield KeyLine()

    def on_mount(self) -> None:
        self._table.focus()
        self.load()

    @property
    def _table(self) -> DataTable[Text]:
        return self.query_one("#commits", DataTable)

    @property
    def _asks(self) -> AskBar:
        return self.query_one("#ask", AskBar)

    @property
    def _chosen(self) -> Commit | None:
        row = self._table.cursor_row
        return self._commits[row] if 0 <= row < len(self._commits) else None

    @property
    def copied(self) -> str:
        """The differences that are shown."""
        return "\n".join(item.text for item in self._shown.items) if self._shown else ""

    # reading git -----------------------------------------------------------------------------------

    @work(group="load", exclusive=True)
    async def load(self) -> None:
        """Read the session's iterations; where there are none, say why as long as the screen stands."""
        try:
            found = await asyncio.to_thread(self._read)
        except StitchError as error:
            self.query_one("#title", Static).update(Content(" History"))
            self.query_one("#about", Static).update(Content(printable(str(error))))
            self.add_class("-none")
            return
        self.remove_class("-none")
        self._sessions, self._commits, self._best = found
        title = f" History: {self._session}, {count(len(self._commits), 'iteration')}"
        self.query_one("#title", Static).update(Content(printable(title)))
        self._list()

    def _read(self) -> tuple[list[Session], list[Commit], Commit | None]:
        sessions = self._history.sessions()
        known = self._session in {session.name for session in sessions}
        chosen = self._history.session(self._session if known else None)
        self._session = chosen.name
        commits = self._history.log(chosen.name)
        return sessions, commits[::-1], self._history.best(chosen.name)

    async def _from_git(self, ask: Callable[[], T]) -> T | None:
        """What git answers; an error is shown, and None."""
        try:
            return await asyncio.to_thread(ask)
        except StitchError as error:
            self.notify(str(error), severity="error", timeout=8, markup=False)
            return None

    def _list(self) -> None:
        """One row an iteration, in the columns that say something."""
        row = self._table.cursor_row
        self._table.clear(columns=True)
        rows = [
            versions.cells(commit.iteration, best=commit == self._best, marked=commit == self._marked)
            for commit in self._commits
        ]
        filled = [n for n, _ in enumerate(COLUMNS) if any(cells[n] for cells in rows)]
        for n in filled:
            self._table.add_column(_cell(n, COLUMNS[n]), key=COLUMNS[n])
        for commit, cells in zip(self._commits, rows, strict=True):
            style = self.app.theme_variables["gate-pass"] if commit == self._best else ""
            style = "" if style.startswith("ansi") else style
            self._table.add_row(*(_cell(n, one_line(cells[n]), style) for n in filled))
        self._table.move_cursor(row=min(max(row, 0), max(len(self._commits) - 1, 0)))

    def on_data_table_row_highlighted(self) -> None:
        self.compare()

    @work(group="compare", exclusive=True)
    async def compare(self) -> None:
        """Show what the chosen iteration changed, or how it differs from the marked one."""
        commit = self._chosen
        if commit is None:
            return
        found = await self._from_git(partial(self._differences, commit, self._marked))
        if found is None:
            return
        self._shown = found
        against = f"#{self._marked.iteration.iteration}" if self._marked else "the one before"
        title = f"#{commit.iteration.iteration} against {against}"
        self.query_one("#changes").border_title = Content(title)
        lines = [
            *versions.about(commit.iteration),
            f"{commit.author}, {commit.time:%Y-%m-%d %H:%M}",
            commit.sha,
        ]
        self.query_one("#about", Static).update(Content(printable("\n".join(lines))))
        self._show()

    def _differences(self, commit: Commit, marked: Commit | None) -> versions.Differences:
        order = [c.sha for c in self._commits]
        place = order.index(commit.sha) + 1
        before = marked or (self._commits[place] if place < len(self._commits) else None)
        name = self._session
        old = self._history.files(before.sha, name) if before else {}
        return versions.differences(old, self._history.files(commit.sha, name))

    def _show(self) -> None:
        if self._shown:
            items = folded(self._shown.items) if self._folds else self._shown.items
            self.query_one(CodeView).show(items, Files(self._shown.new), Files(self._shown.old))

    # keys ------------------------------------------------------------------------------------------

    def action_mark(self) -> None:
        self._marked = None if self._chosen == self._marked else self._chosen
        self._list()

    def action_fold(self) -> None:
        self._folds = not self._folds
        self._show()

    def action_hunk(self, step: int) -> None:
        self.query_one(CodeView).to_hunk(step)

    def action_switch(self) -> None:
        (self.query_one(CodeView) if self._table.has_focus else self._table).focus()

    def action_leave(self) -> None:
        self.app.pop_screen()

    def action_session(self) -> None:
        names = [session.name for session in self._sessions]
        if len(names) < 2:
            self.notify("there is no other session", timeout=2, markup=False)
            return
        self._session = names[(names.index(self._session) + 1) % len(names)]
        self._marked = None
        self.load()

    @work(group="ask")
    async def action_restore(self) -> None:
        commit = self._chosen
        if commit is None:
            return
        number, name = commit.iteration.iteration, self._session
        preview = await self._from_git(partial(self._preview, commit))
        if preview is None:
            return
        question = f"restore #{number} ({_number(commit)})? {preview}"
        if self._restore is not None:
            restore = self._restore
            self._asks.ask(question, Choice("c", "the engine goes on from it", lambda: restore(number)))
            return

        def again(part: Part) -> Callable[[], object]:
            return lambda: self.change(
                lambda: self._history.restore(number, name, part=part, decision="restored by human"),
                f"restored {part} of #{number}",
            )

        choices = (("c", Part.CODE), ("p", Part.PLAN), ("b", Part.BOTH))
        self._asks.ask(question, *(Choice(key, str(part), again(part)) for key, part in choices))

    def _preview(self, commit: Commit) -> str:
        """What restoring would change at the branch's tip."""
        last = self._commits[0]
        files = self._history.files
        return versions.differences(files(last.sha, self._session), files(commit.sha, self._session)).sentence

    def action_apply(self) -> None:
        if (commit := self._chosen) is None:
            return
        number, name = commit.iteration.iteration, self._session
        self._asks.ask(
            f"bring #{number} ({_number(commit)}) into your tree as {commit.origin.tree}/?",
            Choice(
                "y", "as changes", lambda: self.change(lambda: self._history.apply(number, name), "applied")
            ),
            Choice(
                "c",
                "as a commit",
                lambda: self.change(lambda: self._history.apply(number, name, commit=True), "committed"),
            ),
        )

    def action_export(self) -> None:
        if (commit := self._chosen) is None:
            return
        number, name = commit.iteration.iteration, self._session
        target = Path.cwd() / f"stitched-{name}-{number}"
        self._asks.ask(
            f"write #{number} to {target}?",
            Choice(
                "y",
                "export",
                lambda: self.change(lambda: self._history.export(number, target, name), f"wrote {target}"),
            ),
        )

    @work(group="change")
    async def change(self, do: Callable[[], object], said: str) -> None:
        """Have git do something, say so, and read again."""
        if await self._from_git(do) is not None:
            self.notify(said, timeout=5, markup=False)
            self.load()


def _cell(column: int, text: str, style: str = "") -> Text:
    return Text(text, style, justify="right" if COLUMNS[column] in NUMBERS else "left")


def _number(commit: Commit) -> str:
    entry = commit.iteration
    if entry.speedup_best_baseline is not None:
        return times(entry.speedup_best_baseline)
    return str(entry.verdict or entry.outcome)
