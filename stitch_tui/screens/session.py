"""The session screen: plan, code and verdict side by side, what was tried below, the composer at the foot."""

from pathlib import Path
from time import monotonic

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from stitch_tui.agents.state import Iteration
from stitch_tui.link import Feed
from stitch_tui.screens import session_keys
from stitch_tui.screens.session_keys import ON_SUBTASK, STEERING
from stitch_tui.screens.steering import Steering
from stitch_tui.tools.errors import StitchError
from stitch_tui.view.board import Board
from stitch_tui.view.drafts import Drafts
from stitch_tui.view.wording import GLYPH
from stitch_tui.widgets.ask import AskBar
from stitch_tui.widgets.banner import Banner
from stitch_tui.widgets.chart import Point, SpeedupChart, is_timed, points
from stitch_tui.widgets.coder import CoderPane
from stitch_tui.widgets.composer import Composer
from stitch_tui.widgets.iterations import IterationTable
from stitch_tui.widgets.keyline import KeyLine
from stitch_tui.widgets.planner import SubtaskList
from stitch_tui.widgets.subtask_details import SubtaskDetails
from stitch_tui.widgets.subtask_form import SubtaskForm
from stitch_tui.widgets.tabs import PANES, PaneTabs
from stitch_tui.widgets.verifier import VerifierPane

DRAWN_HZ = 15
REST = 3
"""Times what a picture took, until the next one."""
SAVED_S = 2.0
TITLES = {
    "planner": "1 Planner · speedup, share of time",
    "coder": "2 Coder",
    "verifier": "3 Verifier",
}


class SessionScreen(Steering):
    """Draws the board a few times a second, when something on it changed."""

    BINDINGS = session_keys.BINDINGS

    def __init__(self, board: Board, feed: Feed, project: Path, drafts: Drafts) -> None:
        super().__init__(board, feed)
        self._project, self._drafts = project, drafts
        self._drawn: tuple[object, ...] = ()
        self._follows = True
        self._auto: str | None = None
        """What was selected when the board was last drawn."""
        self._pinned: Iteration | None = None
        self._offers: tuple[object, ...] = ()
        """What the footer depends on."""
        self._pane = "planner"
        self._rests_until = 0.0

    def compose(self) -> ComposeResult:
        yield Banner(id="banner")
        yield PaneTabs(id="tabs")
        with Horizontal(id="panes"):
            with Vertical(id="planner", classes="pane tabbed -shown"):
                yield SubtaskList(id="subtasks")
                yield SubtaskDetails(id="details")
                yield SubtaskForm(id="form")
            yield CoderPane(id="coder").add_class("pane", "tabbed")
            yield VerifierPane(id="verifier").add_class("pane", "tabbed")
        with Horizontal(id="runs"):
            yield SpeedupChart(id="chart").add_class("pane")
            yield IterationTable(id="iterations").add_class("pane")
        yield AskBar(id="ask")
        yield Composer(self._drafts, id="composer")
        yield KeyLine()

    def on_mount(self) -> None:
        for name, title in TITLES.items():
            self.query_one(f"#{name}").border_title = Content(title)
        self.query_one("#chart").border_subtitle = Content("● kept  ○ slower")
        self.query_one("#iterations").border_title = Content("Iterations")
        (self.composer.field if self._drafts.draft else self.planner).focus()
        self._show_pane("planner")
        self.run_worker(self.feed.run(self.board), group="feed", exit_on_error=True)
        self.set_interval(1 / DRAWN_HZ, self._tick)
        self.set_interval(SAVED_S, self._drafts.save)

    def on_unmount(self) -> None:
        self._drafts.save()

    # drawing ---------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Draw, but leave most of the time to everything else: a costly picture is followed by a rest."""
        began = monotonic()
        if began >= self._rests_until:
            self.draw()
            self._rests_until = monotonic() + (monotonic() - began) * REST

    def draw(self) -> None:
        """Draw the board if it changed since the last time."""
        board = self.board
        state = (board.changes, board.streamed, self.feed.trouble, self.planner.chosen, self._pinned)
        looked_at = self._shown.number if self._shown else 0
        self.query_one("#iterations", IterationTable).update_from(board, looked_at)
        if state == self._drawn:
            if board.stream.lines and not board.stream.finished:
                self._draw_code()
            return
        before, self._drawn = self._drawn, state
        if before[:1] != state[:1] or before[2:] != state[2:]:
            self._draw_state()
        self._draw_code()

    def _draw_state(self) -> None:
        board = self.board
        self.query_one("#banner", Banner).show(board, self.feed.trouble)
        self.planner.update_from(board)
        self._follow()
        shown, subtask = self._shown, self.chosen
        build = board.build_of(shown) if shown else None
        self.query_one("#verifier", VerifierPane).show(
            shown, build, subtask, board.cited.get(self.planner.chosen, ())
        )
        self._draw_chart(points(board.iterations_of(self.planner.chosen)))
        self.query_one("#details", SubtaskDetails).show(subtask)
        waiting = len(board.proposed)
        self.query_one("#planner").border_subtitle = Content(f"? {waiting} to decide") if waiting else None
        self.composer.aim(subtask.id if subtask else "", subtask.id if subtask else "")
        offers = (self.steerable, waiting, subtask.state if subtask else None)
        if offers != self._offers:
            self._offers = offers
            self.refresh_bindings()

    def _draw_chart(self, drawn: list[Point]) -> None:
        """Where nothing is timed its room goes to the table."""
        chart = self.query_one("#chart", SpeedupChart)
        chart.border_title = Content(f"Speedup of {self.planner.chosen or 'the program'}")
        chart.show(drawn)
        self.query_one("#runs").set_class(not is_timed(drawn), "-untimed")

    def _draw_code(self) -> None:
        self.query_one("#coder", CoderPane).update_from(self.board, self.planner.chosen, self._pinned)

    @property
    def _shown(self) -> Iteration | None:
        """The iteration that Coder and Verifier show."""
        return self._pinned or self.board.latest(self.planner.chosen)

    def _follow(self) -> None:
        """Select what is worked on, until a person selects something else."""
        active, chosen = self.board.active, self.planner.chosen
        if self._auto is not None and chosen != self._auto:  # somebody moved
            self._follows = active is not None and chosen == active.id
        if self._follows:
            self.planner.choose(active.id if active else "" if self.board.attempts.get("") else chosen)
        self._auto = self.planner.chosen

    def on_subtask_list_chosen(self, event: SubtaskList.Chosen) -> None:
        if self._pinned and self._pinned.subtask != event.subtask:
            self._pinned = None
        self.draw()

    def on_subtask_list_opened(self) -> None:
        self.query_one("#details").toggle_class("-open")

    def on_iteration_table_picked(self, event: IterationTable.Picked) -> None:
        """Show one iteration until another subtask is selected."""
        self._pinned = self.board.session.iteration(event.number)
        self.planner.choose(self._pinned.subtask)
        self.draw()

    # keys ------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What the footer shows is what works now."""
        if not self.is_mounted:
            return True
        if action in STEERING and not self.steerable:
            return False
        if action in ("approve", "reject"):
            subtask = self.chosen
            return subtask is not None and subtask in self.board.proposed
        if action == "approve_all":
            return bool(self.board.proposed)
        if action in ON_SUBTASK:
            return self.chosen is not None
        return True

    def action_pane(self, pane: str) -> None:
        self._show_pane(pane)
        target = {"planner": "#subtasks", "coder": "#code", "verifier": "#verifier"}[pane]
        self.query_one(target).focus()

    def on_pane_tabs_clicked(self, event: PaneTabs.Clicked) -> None:
        self.action_pane(event.pane)

    def _show_pane(self, pane: str) -> None:
        self._pane = pane
        for name in PANES:
            self.query_one(f"#{name}").set_class(name == pane, "-shown")
        self.query_one(PaneTabs).show(pane)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """The pane that has the focus is the one that a narrow screen shows."""
        for name in PANES:
            if any(node.id == name for node in event.widget.ancestors_with_self):
                self._show_pane(name)

    def action_full(self) -> None:
        self.toggle_class("-full")

    def action_iterations(self) -> None:
        runs = self.query_one("#runs")
        if self.has_class("-short"):
            runs.toggle_class("-wanted")
        else:
            runs.toggle_class("-hidden")

    def action_compose(self) -> None:
        if self.composer.field.has_focus:
            self.action_pane(self._pane)
        else:
            self.composer.field.focus()

    def action_command(self) -> None:
        self.composer.put("/")

    def action_report(self) -> None:
        from stitch_tui.screens.report import ReportScreen

        self.app.push_screen(ReportScreen(self.board))

    def action_log(self) -> None:
        from stitch_tui.screens.report import LogScreen

        self.app.push_screen(LogScreen(self.board))

    def action_profile(self) -> None:
        from stitch_tui.screens.profile import ProfileScreen

        self.app.push_screen(ProfileScreen(self.board))

    async def action_edit_plan(self) -> None:
        from stitch_tui.editor import edited
        from stitch_tui.view import plan_text

        text = edited(self.app, plan_text.written(self.board.session), "plan.md")
        if text is not None:
            await self.propose_plan(text)

    def action_edit_code(self) -> None:
        from stitch_tui.editor import edit_from
        from stitch_tui.session import source_path

        if (subtask := self.chosen) is None:
            return
        try:
            path = source_path(self._project, self.board.session, subtask.id)
        except StitchError as error:
            self.tell(str(error), bad=True)
            return
        if edit_from(self.app, path):
            self.tell("what you saved is judged next")

    @property
    def copied(self) -> str:
        """What the focused pane shows, as text."""
        if self._pane == "coder":
            return self.query_one("#coder", CoderPane).text
        if self._pane == "verifier":
            return str(self.query_one("#verdict-text", Static).content)
        return "\n".join(f"{GLYPH[s.state]} {s.id} {s.state} {s.title}" for s in self.board.session.subtasks)
