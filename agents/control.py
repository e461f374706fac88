"""What each command of a human does to a run: checked, journalled as a decision, then carried out."""

from collections.abc import Callable
from functools import singledispatchmethod

from stitch_tui.agents import commands, events, plan_edits
from stitch_tui.agents.commands import Reply
from stitch_tui.agents.gates import Gates, Overtaken, Redirected, Stopped
from stitch_tui.agents.ledger import Ledger
from stitch_tui.agents.plan_edits import Refused, named
from stitch_tui.agents.record import Record
from stitch_tui.agents.settings import Autonomy
from stitch_tui.agents.state import Plan, Subtask, SubtaskState
from stitch_tui.agents.weighing import weighed
from stitch_tui.tools.errors import Denied, StitchError
from stitch_tui.tools.graph import Graph
from stitch_tui.tools.roofline import Peaks

NOW, NEXT, AFTER = "now", "before the next build, launch or commit", "after the current step"
WHO = "human"


class Control:
    """Carries out commands; each is done, or refused with the reason, before the next one is read."""

    def __init__(self, record: Record, gates: Gates) -> None:
        self._record, self._gates = record, gates
        self._graph: Graph | None = None
        self._peaks: Peaks | None = None
        self._ledger: Ledger | None = None

    def begin(self, graph: Graph, peaks: Peaks | None, ledger: Ledger) -> None:
        """From now on there is a program to plan for, on a device with these peaks."""
        self._graph, self._peaks, self._ledger = graph, peaks, ledger

    def carry_out(self, command: commands.Command) -> Reply:
        """Do what `command` says; the reply tells when it takes effect, or why it is refused."""
        try:
            self._require_current(command)
            text, ok = self._do(command), True
        except StitchError as error:
            text, ok = str(error), False
        self._gates.notify()
        return Reply(ok=ok, text=text, generation=self._record.session.generation, seq=self._record.seq)

    def _require_current(self, command: commands.Command) -> None:
        now = self._record.session.generation
        if not isinstance(command, commands.Attach) and command.generation != now:
            raise Refused(
                "the command is stale",
                why=f"it was made for generation {command.generation}; a redirect or stop made it {now}",
                advice="look again, then decide",
            )

    @singledispatchmethod
    def _do(self, command: commands.Command) -> str:
        raise Refused(f"{command.type} is not done here")

    @_do.register
    def _(self, command: commands.Attach) -> str:
        return "attached"

    @_do.register
    def _(self, command: commands.Decide) -> str:
        session = self._record.session
        chosen = [named(session, command.subtask)] if command.subtask else list(session.subtasks)
        chosen = [subtask for subtask in chosen if subtask.state is SubtaskState.PROPOSED]
        if not chosen:
            raise Refused("nothing waits for this decision", where=command.subtask)
        self._decide(command.choice, command.subtask, command.text)
        if command.choice == "reject" and not command.subtask:
            self._gates.end(Denied("the plan was rejected", why=command.text))
        elif command.choice == "reject":
            self._leave(chosen[0], f"rejected by {WHO}")
        elif command.subtask:
            self._record.emit(events.SubtaskUpdated(subtask=command.subtask, state=SubtaskState.APPROVED))
        else:
            self._record.emit(events.PlanApproved(who=WHO))
        return NOW

    @_do.register
    def _(self, command: commands.Edit) -> str:
        plan = plan_edits.edited(self._record.session, self._known_graph(), command)
        return self._replan(plan, "edit", command.subtask)

    @_do.register
    def _(self, command: commands.Add) -> str:
        plan = plan_edits.added(self._record.session, self._known_graph(), command)
        return self._replan(plan, "add", plan.subtasks[-1].id)

    @_do.register
    def _(self, command: commands.Reorder) -> str:
        self._replan(plan_edits.reordered(self._record.session, command), "reorder", command.subtask)
        return AFTER

    @_do.register
    def _(self, command: commands.Redirect) -> str:
        subtask = named(self._record.session, command.subtask)
        if subtask.state.ended:
            raise Refused(f"it is {subtask.state}", where=subtask.id)
        self._decide("redirect", subtask.id, command.text, turn=True)
        self._gates.overtake(Redirected(f"redirected by {WHO}"), subtask.id, now=command.now)
        if self._gates.working_on != subtask.id:
            return "before its next attempt"
        return NOW if command.now else NEXT

    @_do.register
    def _(self, command: commands.Skip) -> str:
        session = self._record.session
        if command.undo:
            return self._replan(plan_edits.taken_back(session, command.subtask), "take back", command.subtask)
        subtask = named(session, command.subtask)
        if subtask.state.ended:
            raise Refused(f"it is {subtask.state} already", where=subtask.id)
        running = self._gates.working_on == subtask.id
        self._decide("skip", subtask.id, command.text, turn=running)
        self._leave(subtask, f"skipped by {WHO}")
        if running:
            self._gates.overtake(Overtaken(f"skipped by {WHO}"), subtask.id, now=True)
        return NOW

    @_do.register
    def _(self, command: commands.SetAutonomy) -> str:
        self._decide("autonomy", text=command.mode)
        self._gates.mode = command.mode
        proposed = any(s.state is SubtaskState.PROPOSED for s in self._record.session.subtasks)
        if command.mode is Autonomy.AUTO and proposed:
            self._record.emit(events.PlanApproved(who=command.mode))
        return NOW

    @_do.register
    def _(self, command: commands.Pause) -> str:
        if self._gates.paused:
            raise Refused("the run is paused already")
        self._decide("pause")
        return AFTER

    @_do.register
    def _(self, command: commands.Resume) -> str:
        if not self._gates.paused:
            raise Refused("the run is not paused")
        self._decide("resume")
        return NOW

    @_do.register
    def _(self, command: commands.Stop) -> str:
        self._decide("stop", text=command.text, turn=True)
        self._gates.end(Stopped(f"stopped by {WHO}" + (f": {command.text}" if command.text else "")))
        return NOW

    @_do.register
    def _(self, command: commands.Restore) -> str:
        ledger, session, number = self._ledger, self._record.session, command.iteration
        if self._gates.denies("commit"):
            raise Refused("a rule denies this run to commit", where="autonomy.deny")
        if ledger is None or number > len(session.iterations):
            raise Refused(f"no iteration {number}", why=f"there are {len(session.iterations)}")
        wanted = session.iteration(number)
        if not wanted.subtask or wanted.verdict is None or not wanted.verdict.correct or not wanted.commit:
            raise Refused(
                f"iteration {number} is no correct version of a subtask",
                advice="stop the run, then: stitch restore",
            )
        self._decide("restore", wanted.subtask, iteration=number)
        self._gates.after_step(lambda: ledger.restore(number))
        return AFTER

    def _decide(
        self,
        action: str,
        subtask: str = "",
        text: str = "",
        *,
        turn: bool = False,
        iteration: int | None = None,
    ) -> None:
        """Journal a decision; with `turn` a new generation begins."""
        self._record.emit(
            events.Decision(
                who=WHO,
                action=action,
                subtask=subtask,
                text=text,
                iteration=iteration,
                generation=self._record.session.generation + turn,
            )
        )

    def _replan(self, plan: Plan, action: str, subtask: str) -> str:
        self._decide(action, subtask)
        known = weighed(plan, self._graph, self._peaks) if self._graph else plan
        self._record.emit(events.PlanUpdated(plan=known))
        return NOW if self._gates.working_on != subtask else "with its next attempt"

    def _leave(self, subtask: Subtask, reason: str) -> None:
        self._record.emit(
            events.SubtaskFinished(subtask=subtask.id, state=SubtaskState.SKIPPED, best=None, reason=reason)
        )

    def _known_graph(self) -> Graph:
        if self._graph is None:
            raise Refused("there is no plan yet")
        return self._graph


Carrier = Callable[[commands.Command], Reply]
