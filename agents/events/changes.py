"""How an event changes a session: its subtasks and its iterations."""

from collections.abc import Sequence
from typing import Any

from stitch_tui.agents.state import Iteration, Session, Subtask
from stitch_tui.tools.iteration import Outcome


def with_subtask(session: Session, id: str, **changes: Any) -> Session:
    """The session with these fields of one subtask changed; as it is where it has no such subtask."""
    if session.plan is None:
        return session
    subtasks: tuple[Subtask, ...] = tuple(
        s.model_copy(update=changes) if s.id == id else s for s in session.plan.subtasks
    )
    return session.model_copy(update={"plan": session.plan.model_copy(update={"subtasks": subtasks})})


def with_versions_of(session: Session, number: int) -> Session:
    """The session with each subtask's best as it was at an iteration of it.

    A kernel that had none then keeps its own; without a host program the stitcher's is the one.
    """
    for subtask in session.subtasks:
        if subtask.best is None or subtask.best <= number:
            continue
        known = session.attempts_of(subtask.id)
        kept = [i.number for i in known if i.outcome is Outcome.KEPT and i.number <= number]
        if kept or subtask.is_host:
            session = with_subtask(session, subtask.id, best=kept[-1] if kept else None)
    return session


def without_stale_program(session: Session, before: Session) -> Session:
    """The session, without the verdict on its program where other versions of kernels belong in there now."""
    if _versions(session) == _versions(before):
        return session
    return session.model_copy(update={"program": None})


def _versions(session: Session) -> dict[str, int]:
    return {subtask.id: subtask.best for subtask in session.kernels if subtask.best is not None}


def with_iteration(session: Session, number: int, **changes: Any) -> Session:
    """The session with these fields of one of its iterations, counted from 1, changed."""
    index = number - 1
    changed = session.iteration(number).model_copy(update=changes)
    known: Sequence[Iteration] = session.iterations
    if isinstance(known, Growing):
        known[index] = changed
        return session
    iterations = (*known[:index], changed, *known[index + 1 :])
    return session.model_copy(update={"iterations": iterations})


def appended(iterations: Sequence[Iteration], new: Iteration) -> Sequence[Iteration]:
    """The iterations with one more behind them; grown in place where a fold alone holds them."""
    if isinstance(iterations, Growing):
        iterations.append(new)
        return iterations
    return (*iterations, new)


class Growing(list[Iteration]):
    """Iterations while a fold alone holds them: changed in place, so that its time stays linear."""
