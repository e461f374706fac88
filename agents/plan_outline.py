"""What a person may change in a plan, as rows; two outlines give the commands from one to the other.  Pure.

The outline that a person began with need not be the plan of now: what they did not touch stays as it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stitch_tui.agents.commands import Add, Command, Decide, Edit, Reorder, Skip
from stitch_tui.agents.state import Session, Subtask, SubtaskState
from stitch_tui.tools.errors import UsageError

PROPOSED, APPROVED, SKIPPED = SubtaskState.PROPOSED, SubtaskState.APPROVED, SubtaskState.SKIPPED


@dataclass(frozen=True)
class Row:
    """One subtask as a person writes it."""

    id: str
    """Empty: a new subtask."""
    title: str
    nodes: tuple[str, ...]
    strategy: str
    state: str = ""
    """Empty: nothing is said of it."""

    @property
    def name(self) -> str:
        return f"{self.id} {self.title}".strip()


@dataclass(frozen=True)
class Change:
    """One change, in a sentence and as the command that makes it."""

    text: str
    make: Callable[[int], Command]
    """For a generation of the session."""
    turns: str = ""
    """The subtask whose running step is of no more use; empty: none."""


def outline(session: Session) -> tuple[Row, ...]:
    """The plan as it stands."""
    return tuple(_row(subtask) for subtask in session.subtasks)


def _row(subtask: Subtask) -> Row:
    told = subtask.state.ended or subtask.state is PROPOSED
    state = subtask.state if told else APPROVED
    return Row(subtask.id, subtask.title, subtask.covers, subtask.strategy.strip(), str(state))


def changes(now: Session, before: Sequence[Row], after: Sequence[Row]) -> list[Change]:
    """What leads from `before` to `after`, in the order in which it must be done.

    Raises:
        UsageError: a row names no known subtask, stands there twice, or says what cannot be.
    """
    known = {subtask.id: subtask for subtask in now.subtasks}
    base = {row.id: row for row in outline(now)} | {row.id: row for row in before}
    for number, row in enumerate(after):
        _require_possible(row, known)
        if row.id and row.id in {other.id for other in after[:number]}:
            raise UsageError(f"{row.id} stands there twice", where=row.name)
    kept = [row for row in after if row.id]
    return [
        *(change for row in kept for change in _edits(base[row.id], row)),
        *(change for row in kept for change in _decisions(known[row.id], base[row.id], row)),
        *_skips(known, before, kept),
        *(_addition(row) for row in after if not row.id),
        *_moves(now, [row.id for row in before], [row.id for row in kept]),
    ]


def _require_possible(row: Row, known: dict[str, Subtask]) -> None:
    if row.id and row.id not in known:
        raise UsageError(f"no subtask {row.id}", where=row.name, advice="a new one has no id")
    if not row.id and not row.nodes:
        raise UsageError("a new subtask needs nodes", where=row.name)
    if not row.id and not row.title:
        raise UsageError("a new subtask needs a title", where=" ".join(row.nodes))


def _edits(old: Row, row: Row) -> list[Change]:
    title = row.title if row.title and row.title != old.title else None
    strategy = row.strategy if row.strategy != old.strategy.strip() else None
    nodes = row.nodes if row.nodes and row.nodes != old.nodes else None
    named = (("title", title), ("strategy", strategy), ("nodes", nodes))
    if not (changed := [name for name, value in named if value is not None]):
        return []
    turns = row.id if strategy is not None else ""
    return [Change(f"{row.id}: {', '.join(changed)}", _edit(row.id, title, strategy, nodes), turns)]


def _edit(
    id: str, title: str | None, strategy: str | None, nodes: tuple[str, ...] | None
) -> Callable[[int], Command]:
    return lambda g: Edit(subtask=id, title=title, strategy=strategy, nodes=nodes, generation=g)


def _decisions(subtask: Subtask, old: Row, row: Row) -> list[Change]:
    """What a changed state means: it is approved, left out, or taken back."""
    if row.state in ("", old.state):
        return []
    if row.state == SKIPPED:
        return [] if subtask.state.ended else [_skip(subtask, "skipped in the plan")]
    if row.state == APPROVED and subtask.state is PROPOSED:
        return [Change(f"{row.id}: approved", lambda g: Decide(subtask=row.id, generation=g))]
    if row.state in (APPROVED, PROPOSED) and subtask.state is SKIPPED:
        return [Change(f"{row.id}: taken back", lambda g: Skip(subtask=row.id, undo=True, generation=g))]
    raise UsageError(
        f"its state cannot become {row.state!r}",
        where=row.name,
        why=f"it is {subtask.state}",
        advice=f"write {APPROVED}, {SKIPPED}, or what stood there",
    )


def _skips(known: dict[str, Subtask], before: Sequence[Row], kept: Sequence[Row]) -> list[Change]:
    """What was there and is not any more."""
    left = {row.id for row in kept}
    gone = [known[row.id] for row in before if row.id in known and row.id not in left]
    return [_skip(subtask, "deleted from the plan") for subtask in gone if not subtask.state.ended]


def _skip(subtask: Subtask, why: str) -> Change:
    return Change(f"{subtask.id}: skipped", lambda g: Skip(subtask=subtask.id, text=why, generation=g))


def _addition(row: Row) -> Change:
    return Change(
        f"new: {row.title}",
        lambda g: Add(title=row.title, nodes=row.nodes, strategy=row.strategy, generation=g),
    )


def _moves(now: Session, before: Sequence[str], wanted: Sequence[str]) -> list[Change]:
    """The fewest moves would be clever; these are right: each subtask to its place, from the top."""
    if [id for id in before if id in wanted] == [id for id in wanted if id in before]:
        return []
    order = [subtask.id for subtask in now.subtasks]
    found = []
    for place, id in enumerate([*wanted, *(id for id in order if id not in wanted)]):
        if order[place] != id:
            order.remove(id)
            order.insert(place, id)
            found.append(Change(f"{id}: to place {place + 1}", _move(id, place + 1)))
    return found


def _move(id: str, place: int) -> Callable[[int], Command]:
    return lambda g: Reorder(subtask=id, position=place, generation=g)
