"""The session as data: plan, subtasks, iterations.  Pure; it changes only by folding in events."""

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from stitch_tui.tools.graph import Region
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.verdict import Verdict


class SubtaskState(StrEnum):
    PROPOSED = "proposed"
    APPROVED = "approved"
    CODING = "coding"
    BUILDING = "building"
    CHECKING = "checking"
    MEASURING = "measuring"
    DONE = "done"
    SKIPPED = "skipped"
    PAUSED = "paused"
    FAILED = "failed"

    @property
    def active(self) -> bool:
        return self in _ACTIVE

    @property
    def ended(self) -> bool:
        return self in _ENDED


_ACTIVE = {SubtaskState.CODING, SubtaskState.BUILDING, SubtaskState.CHECKING, SubtaskState.MEASURING}
_ENDED = {SubtaskState.DONE, SubtaskState.SKIPPED, SubtaskState.FAILED}


class Author(StrEnum):
    BUILTIN = "builtin"
    MODEL = "model"
    HUMAN = "human"


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Candidate(_Data):
    """One attempt at a subtask: a ``.cu`` behind ``stitch.h``."""

    source: str
    strategy: str
    note: str = ""
    author: Author = Author.BUILTIN


class Subtask(_Data):
    """A region of the reference that one candidate shall replace."""

    id: str
    title: str
    region: Region
    strategy: str = ""
    share: float | None = None
    """Of the reference's measured time, 0-1."""
    amdahl: float | None = None
    """Bound of the whole program's speedup if this subtask took no time."""
    bound_us: float | None = None
    """Roofline bound of the region on the device."""
    reduction_length: int = 1
    """Longest sum behind one output element: enters the tolerance."""
    opaque: bool = False
    """Covers a program that could not be exported."""
    state: SubtaskState = SubtaskState.PROPOSED
    attempts: int = 0
    best: int | None = None
    """Number of the iteration that holds its best version."""
    reason: str = ""
    """Why it ended as it did."""
    direction: str = ""
    """What a human last asked of it."""


class Uncovered(_Data):
    """Nodes that stay with PyTorch, and why."""

    nodes: tuple[str, ...]
    reason: str


class Plan(_Data):
    """How the program is cut: subtasks, hottest first, and what is left to PyTorch."""

    subtasks: tuple[Subtask, ...]
    uncovered: tuple[Uncovered, ...] = ()
    note: str = ""


class Iteration(_Data):
    """One attempt from code to verdict to commit."""

    number: int
    """Counts through the session, from 1."""
    subtask: str
    """Empty for an iteration of the whole program."""
    attempt: int
    """Counts within the subtask."""
    kind: Kind
    candidate: Candidate | None = None
    verdict: Verdict | None = None
    outcome: Outcome | None = None
    commit: str = ""


class Status(StrEnum):
    """How a session stands or ended."""

    RUNNING = "running"
    GOAL_MET = "goal met"
    GOAL_NOT_MET = "goal not met"
    LIMIT = "limit reached"
    FAILED = "failed"
    STOPPED = "stopped"


class Session(_Data):
    """Everything known of a session: the fold of its events."""

    id: str = ""
    reference: str = ""
    device: str = ""
    branch: str = ""
    base: str = ""
    target: str = ""
    """The reference as the user named it, ``model.py:Net``."""
    options: dict[str, Any] = {}
    """Settings of the reference that verdicts depend on."""
    sha256: str = ""
    """Of the reference's source."""
    tip: str = ""
    """The last commit of the branch that the journal knows."""
    autonomy: str = ""
    """How much the run asks: ``ask-each``, ``ask-plan`` or ``auto``."""
    generation: int = 0
    """Changes on redirect and stop; a command for an older one is refused."""
    undelivered: tuple[str, ...] = ()
    """Decisions that no commit has told of yet."""
    plan: Plan | None = None
    iterations: tuple[Iteration, ...] = ()
    program: Verdict | None = None
    """Verdict on the stitched whole."""
    coverage: float | None = None
    """Share of the reference's time in custom kernels that were kept."""
    status: Status = Status.RUNNING
    reason: str = ""

    @property
    def subtasks(self) -> tuple[Subtask, ...]:
        return self.plan.subtasks if self.plan else ()

    @property
    def pending(self) -> Iteration | None:
        """The iteration that was begun and has no commit."""
        last = self.iterations[-1] if self.iterations else None
        return last if last is not None and not last.commit else None

    def subtask(self, id: str) -> Subtask:
        """The subtask with this id.

        Raises:
            KeyError: there is none.
        """
        for subtask in self.subtasks:
            if subtask.id == id:
                return subtask
        raise KeyError(id)

    def iteration(self, number: int) -> Iteration:
        """The iteration with this number, from 1.

        Raises:
            IndexError: there is none.
        """
        if not 1 <= number <= len(self.iterations):
            raise IndexError(number)
        return self.iterations[number - 1]

    def best_of(self, subtask: Subtask) -> Iteration | None:
        return None if subtask.best is None else self.iteration(subtask.best)

    def attempts_of(self, id: str) -> tuple[Iteration, ...]:
        return tuple(iteration for iteration in self.iterations if iteration.subtask == id)
