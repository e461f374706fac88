"""What a person decides on the session screen: each key makes a command, and the engine's answer is shown."""

from collections.abc import Callable
from time import monotonic

from stitch_tui.agents.commands import (
    Add,
    Decide,
    Edit,
    Pause,
    Redirect,
    Reorder,
    Restore,
    Resume,
    SetAutonomy,
    Skip,
)
from stitch_tui.agents.settings import Autonomy
from stitch_tui.agents.state import Subtask, SubtaskState
from stitch_tui.link import Feed
from stitch_tui.plain_text import count
from stitch_tui.screens.ordering import Make, Ordering, sentence
from stitch_tui.tools.errors import StitchError
from stitch_tui.tools.iteration import Outcome
from stitch_tui.view import orders, plan_text
from stitch_tui.view.board import Board
from stitch_tui.widgets.ask import AskBar, Choice
from stitch_tui.widgets.composer import Composer, Field
from stitch_tui.widgets.planner import SubtaskList
from stitch_tui.widgets.subtask_form import SubtaskForm

TWICE_S = 3.0
"""Two Esc within this time cancel the current step."""


class Steering(Ordering):
    """The decisions; the screen that draws is its subclass."""

    def __init__(self, board: Board, feed: Feed) -> None:
        super().__init__(board, feed)
        self._escaped = -TWICE_S

    # the parts that decisions are about -----------------------------------------------------------

    @property
    def planner(self) -> SubtaskList:
        return self.query_one("#subtasks", SubtaskList)

    @property
    def composer(self) -> Composer:
        return self.query_one("#composer", Composer)

    @property
    def form(self) -> SubtaskForm:
        return self.query_one("#form", SubtaskForm)

    @property
    def asks(self) -> AskBar:
        return self.query_one("#ask", AskBar)

    @property
    def chosen(self) -> Subtask | None:
        """The selected subtask."""
        return self.board.subtask(self.planner.chosen)

    # the keys --------------------------------------------------------------------------------------

    def action_approve(self) -> None:
        if (subtask := self.chosen) and self._settled([subtask]):
            self.order(lambda g: Decide(subtask=subtask.id, generation=g))

    def action_approve_all(self) -> None:
        waiting = self.board.proposed
        if waiting and self._settled(waiting):
            question = f"approve {count(len(waiting), 'subtask')}?"
            self.asks.ask(
                question, Choice("y", "approve", lambda: self.order(lambda g: Decide(generation=g)))
            )

    def action_reject(self) -> None:
        if (subtask := self.chosen) and self._settled([subtask]):
            self.order(lambda g: Decide(subtask=subtask.id, choice="reject", generation=g))

    def _settled(self, subtasks: list[Subtask]) -> bool:
        """Were these on screen long enough for a key to be meant for them?"""
        if settled := self.planner.settled([s.id for s in subtasks]):
            return settled
        self.tell("it has just appeared: look, then press again")
        return False

    def action_edit(self) -> None:
        if (subtask := self.chosen) is None:
            return
        if subtask.state.active:
            self.tell("it is being worked on: redirect it instead (r)")
            return
        self._write(subtask)

    def action_add(self) -> None:
        self._write(None)

    def _write(self, subtask: Subtask | None) -> None:
        self.add_class("-writing")
        self.form.open(subtask)

    def _written(self) -> None:
        self.remove_class("-writing")
        self.planner.focus()

    def on_subtask_form_saved(self, event: SubtaskForm.Saved) -> None:
        self.run_worker(self._save(event), group="orders", exit_on_error=False)

    async def _save(self, event: SubtaskForm.Saved) -> None:
        before, after = event.before, event.after
        if before == after or await self.ordered([_saved(event)]):
            self.form.close()
            self._written()

    def on_subtask_form_left(self) -> None:
        self._written()

    def action_redirect(self, now: bool = False) -> None:
        if self.chosen is not None:
            self.composer.put("/now " if now else "")

    def action_skip(self) -> None:
        subtask = self.chosen
        if subtask is None:
            return
        if subtask.state is SubtaskState.SKIPPED:
            self.order(lambda g: Skip(subtask=subtask.id, undo=True, generation=g))
            return
        self.asks.ask(
            f"leave {subtask.id} {subtask.title} to PyTorch?",
            Choice("y", "skip it", lambda: self.order(lambda g: Skip(subtask=subtask.id, generation=g))),
        )

    def action_move(self, by: int) -> None:
        ids = [s.id for s in self.board.session.subtasks]
        if (subtask := self.chosen) and 0 <= (place := ids.index(subtask.id) + by) < len(ids):
            self.order(lambda g: Reorder(subtask=subtask.id, position=place + 1, generation=g))

    def action_pause(self) -> None:
        if self.board.session.paused:
            self.order(lambda g: Resume(generation=g))
        else:
            self.order(lambda g: Pause(generation=g))

    def action_autonomy(self) -> None:
        modes = list(Autonomy)
        now = self.board.session.autonomy or Autonomy.AUTO
        wanted = modes[(modes.index(Autonomy(now)) + 1) % len(modes)]

        def change() -> None:
            self.order(lambda g: SetAutonomy(mode=wanted, generation=g))

        if wanted is Autonomy.AUTO:
            self.asks.ask("go on without asking? deny rules still hold", Choice("y", "auto", change))
        else:
            change()

    def action_stop(self, why: str = "") -> None:
        if not self.steerable:
            return
        best = self.chosen.best if self.chosen else None
        choices = [Choice("k", "stop, keep everything", lambda: self.order(orders.stop(why)))]
        if best:
            both = self._restoring(best, orders.stop(why))
            choices.append(Choice("b", f"restore best #{best}, then stop", both))
        self.asks.ask("stop the run? the branch ends with the best iteration", *choices)

    def _restoring(self, number: int, then: Make) -> Callable[[], None]:
        return lambda: self.order(lambda g: Restore(iteration=number, generation=g), then)

    def action_restore_best(self) -> None:
        if (subtask := self.chosen) and subtask.best:
            number = subtask.best
            self.asks.ask(
                f"go on from {subtask.id}'s best, #{number}?",
                Choice("y", "restore", lambda: self.go_on_from(number)),
            )

    def action_undo(self) -> None:
        """Back to the version that was kept before the present one."""
        subtask = self.chosen
        kept = (
            [i for i in self.board.iterations_of(subtask.id) if i.outcome is Outcome.KEPT] if subtask else []
        )
        earlier = [i.number for i in kept if subtask and subtask.best and i.number < subtask.best]
        if not earlier:
            self.tell("nothing earlier was kept")
            return
        self.asks.ask(
            f"go back to #{earlier[-1]}?", Choice("y", "undo", lambda: self.go_on_from(earlier[-1]))
        )

    def go_on_from(self, iteration: int) -> None:
        """Have the engine go on from an iteration."""
        self.order(lambda g: Restore(iteration=iteration, generation=g))

    def asks_before_leaving(self) -> bool:
        """Ask what becomes of the run; not when there is none, nor a second time."""
        if not self.steerable or self.asks.asking:
            return False
        self.asks.ask(
            "leave the run?",
            Choice("d", "detach: it goes on", self.app.exit),
            Choice("p", "pause it", lambda: self._leave_after(lambda g: Pause(generation=g))),
            Choice("s", "stop it", lambda: self._leave_after(orders.stop())),
        )
        return True

    def _leave_after(self, make: Make) -> None:
        async def told() -> None:
            if await self.ordered([make]):
                self.app.exit()

        self.run_worker(told(), group="orders", exit_on_error=False)

    def cancel_step(self) -> None:
        """Cancel what runs now; the run goes on with another attempt."""
        active = self.board.active
        if active is None:
            self.tell("no step to cancel")
            return
        direction = active.direction
        self.order(lambda g: Redirect(subtask=active.id, text=direction, now=True, generation=g))

    def action_back(self) -> None:
        """Esc: leave the field, then the pane; twice: cancel the current step."""
        if isinstance(self.focused, Field):
            self.planner.focus()
            return
        if monotonic() - self._escaped <= TWICE_S:
            self._escaped = -TWICE_S
            self.cancel_step()
            return
        self._escaped = monotonic()
        self.planner.focus()
        if self.steerable and self.board.active:
            self.tell("Esc again cancels the current step")

    # the composer ----------------------------------------------------------------------------------

    async def on_field_sent(self, event: Field.Sent) -> None:
        if await self.submit(event.text):
            self.composer.taken(event.text)

    async def submit(self, line: str) -> bool:
        """Do what a line of the composer says; False: it was not understood, or refused."""
        try:
            wanted = orders.read(line, self.board.session, self.composer.target)
        except StitchError as error:
            self.tell(sentence(error), bad=True)
            return False
        if wanted.make is None:
            await self.act(wanted.action, wanted.argument)
            return True
        return await self.ordered([wanted.make])

    async def act(self, action: str, argument: str) -> None:
        """Run an action of this screen or of the app, as its key would."""
        namespace = "" if hasattr(self, f"action_{action}") else "app."
        if namespace or self.check_action(action, ()):
            await self.run_action(
                f"{namespace}{action}({argument!r})" if argument else f"{namespace}{action}"
            )
        else:
            self.tell("not possible now")

    # the plan in an editor -------------------------------------------------------------------------

    async def propose_plan(self, text: str) -> None:
        """Show what a person changed in the plan's text, and ask once."""
        try:
            found = plan_text.changes(self.board.session, text)
        except StitchError as error:
            self.tell(sentence(error), bad=True)
            return
        if not found:
            self.tell("the plan is unchanged")
            return
        listed = "; ".join(change.text for change in found)
        makes = [change.make for change in found]
        self.asks.ask(
            f"{count(len(found), 'change')}: {listed}", Choice("y", "do it", lambda: self.order(*makes))
        )


def _saved(event: SubtaskForm.Saved) -> Make:
    before, after = event.before, event.after
    if not before.subtask:
        return lambda g: Add(title=after.title, nodes=after.nodes, strategy=after.strategy, generation=g)
    return lambda g: Edit(
        subtask=before.subtask,
        title=after.title if after.title != before.title else None,
        strategy=after.strategy if after.strategy != before.strategy else None,
        nodes=after.nodes if after.nodes != before.nodes else None,
        generation=g,
    )
