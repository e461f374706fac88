"""A plan that a human edits as a file, ``plan.toml`` in the session's folder: what they changed is done.

Each change is the command that a viewer would have sent.  One that cannot be done is said in the journal,
and the file stays as the human left it.
"""

from collections.abc import Sequence
from contextlib import suppress

from stitch_tui.agents import events, plan_file
from stitch_tui.agents.control import WHO, Carrier
from stitch_tui.agents.gates import Gates, Redirected
from stitch_tui.agents.plan_outline import Change, Row, changes, outline
from stitch_tui.agents.record import Record
from stitch_tui.agents.workspace import Workspace
from stitch_tui.tools.errors import EnvironmentFault, UsageError


class PlanByHand:
    """Keeps the file as the plan is, until a human makes it say something else.

    Args:
        carry_out: does a command.
    """

    def __init__(self, record: Record, gates: Gates, workspace: Workspace, carry_out: Carrier) -> None:
        self._record, self._gates = record, gates
        self._workspace, self._carry_out = workspace, carry_out
        self._begun: dict[str, tuple[Row, ...]] = {}
        """What the file has said, by its sums: what a human may have begun with."""
        self._said: tuple[Row, ...] = ()
        self._done: bytes | None = None
        self._refused: bytes | str | None = None
        """What was not done, or why it could not be read; said once."""

    def look(self, *, now: bool) -> None:
        """Take what a human wrote since the last look, and write down what has changed otherwise.

        Args:
            now: cancel the step on a subtask that goes another way; otherwise it ends at its next check.
        """
        if self._record.session.plan is None:
            return
        try:
            data = self._workspace.read_plan()
        except UsageError as fault:
            self._refuse(fault, str(fault))
            return
        if data is not None and (data == self._refused or not data.strip()):
            return  # who saves by truncating has not written yet: an empty file says nothing
        if data is not None and data != self._done:
            if not self._take(data, now=now):
                self._refused = data
                return
            self._done = data
        if data is None or outline(self._record.session) != self._said:
            self._write()

    def _refuse(self, fault: UsageError, what: bytes | str) -> None:
        if what != self._refused:
            self._record.emit(events.Warned(text=f"{plan_file.NAME}: {fault}"))
        self._refused = what

    def _take(self, data: bytes, *, now: bool) -> bool:
        """Do what the file says; False: not all of it can be done."""
        session = self._record.session
        try:
            plan = plan_file.read(data)
            if not plan.by_hand:
                return True
            if not plan.whole:
                raise UsageError(
                    "its end is missing",
                    why="it may be half saved, so nothing of it is done",
                    advice=f"end it with the line [{plan_file.END}]",
                )
            found = changes(session, self._begun.get(plan.begun, outline(session)), plan.rows)
        except UsageError as fault:
            self._refuse(fault, data)
            return False
        return not found or self._carried_out(found, now=now)

    def _carried_out(self, found: Sequence[Change], *, now: bool) -> bool:
        person = self._workspace.person
        said = f"{plan_file.NAME}{f' by {person}' if person else ''}: {'; '.join(c.text for c in found)}"
        generation = self._record.session.generation + 1
        self._record.emit(events.Decision(who=WHO, action="rewrite", text=said, generation=generation))
        working = self._gates.working_on
        if working and working in {change.turns for change in found}:
            self._gates.overtake(Redirected("a human rewrote the plan"), working, now=now)
        else:
            self._gates.carry_on()
        refused = False
        for change in found:
            reply = self._carry_out(change.make(self._record.session.generation))
            if not reply.ok:
                refused = True
                self._record.emit(events.Warned(text=f"{plan_file.NAME}: {change.text}: {reply.text}"))
        return not refused

    def _write(self) -> None:
        if self._gates.denies("write"):
            return
        session = self._record.session
        with suppress(EnvironmentFault):  # what has to be written says so; this is tried again
            self._done = self._workspace.write_plan(session)
            self._said = outline(session)
            plan = plan_file.read(self._done)
            self._begun[plan.begun] = plan.rows
