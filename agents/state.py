"""The session as data: plan, subtasks, iterations.  Pure; it changes only by folding in events."""

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from stitch_tui.agents.chat.message import Usage
from stitch_tui.tools.graph import Region
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.race import Race
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


HOST = "host"
"""Id of the subtask whose candidates are host programs."""


class Task(StrEnum):
    """What a subtask's candidates are."""

    KERNEL = "kernel"
    """A ``.cu`` for a region of the graph."""
    PROGRAM = "program"
    """The host side of the stitched program: launches, order, buffers, streams, graph capture."""


class Author(StrEnum):
    BUILTIN = "builtin"
    MODEL = "model"
    HUMAN = "human"


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Candidate(_Data):
    """One attempt at a subtask: a ``.cu`` behind ``stitch.h``, or the text of a host program."""

    source: str
    strategy: str
    note: str = ""
    author: Author = Author.BUILTIN
    refused: str = ""
    """Why it is not even built: what a model answered holds no candidate that keeps the contract."""
    followed: bool | None = None
    """Did it do what the Verifier recommended, by its author's word; None: nothing was recommended."""


class Bottleneck(StrEnum):
    """What limits a kernel or a program."""

    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"
    LAUNCH = "launch"
    HOST = "host"
    CORRECTNESS = "correctness"
    """It is not correct yet: nothing else matters."""
    UNKNOWN = "unknown"


class Disease(StrEnum):
    """What slows a kernel or a program down, as far as it can be named."""

    HOST_BOUND = "host-bound"
    LAUNCH_BOUND = "launch-bound"
    SPILL = "register spills"
    TAIL = "tail effect"
    SMALL_GRID = "too few blocks"
    DIVERGENCE = "divergent branches"
    UNCOALESCED = "uncoalesced access"
    BANK_CONFLICTS = "bank conflicts"
    NO_TENSOR_CORES = "idle tensor cores"
    LOW_OCCUPANCY = "low occupancy"
    LATENCY = "latency-bound"
    MEMORY = "memory-bound"
    COMPUTE = "compute-bound"


class Advice(_Data):
    """What the Verifier makes of one verdict: a diagnosis and one change.  It never changes the verdict."""

    bottleneck: Bottleneck
    evidence: str
    """The numbers that say so."""
    change: str
    """The one change that is recommended."""
    files: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    disease: Disease | None = None
    """What the rules found in the profile, if they advise."""


class Work(_Data):
    """What a region must at least do, and what the device can do at best: its place under the roofline."""

    flops: float
    """A multiply-add counted as two."""
    bytes_moved: float
    """What crosses the region's border, once."""
    peak_flops: float
    """Of the device, a second, for the region's type."""
    bandwidth: float
    """Of the device's memory, bytes a second."""
    source: str = ""
    """Where the two above come from: measured on this GPU, or its data sheet."""


class Subtask(_Data):
    """A region of the reference that one candidate shall replace, or the host side of the whole."""

    id: str
    title: str
    task: Task = Task.KERNEL
    region: Region = Region(nodes=(), inputs=(), outputs=())
    """Empty for the host side, which owns no nodes."""
    strategy: str = ""
    share: float | None = None
    """Of the reference's measured time, 0-1."""
    amdahl: float | None = None
    """Bound of the whole program's speedup if this subtask took no time."""
    bound_us: float | None = None
    """Roofline bound of the region on the device."""
    work: Work | None = None
    """None where the device's peaks are not known, or nobody counted."""
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
    race: Race | None = None
    """Of its variants, before the first attempt; None where none took place."""

    @property
    def is_host(self) -> bool:
        return self.task is Task.PROGRAM

    @property
    def covers(self) -> tuple[str, ...]:
        """The graph nodes that it owns; the word `HOST` alone for the host side."""
        return self.region.nodes if self.task is Task.KERNEL else (HOST,)

    @property
    def file(self) -> str:
        """Where its candidate lies in the session's work folder, for a human to edit."""
        return f"kernels/{self.id}.cu" if self.task is Task.KERNEL else f"{self.id}.py"


class Uncovered(_Data):
    """Nodes that stay with PyTorch, and why."""

    nodes: tuple[str, ...]
    reason: str


class Plan(_Data):
    """How the program is cut: subtasks, hottest first, and what is left to PyTorch."""

    subtasks: tuple[Subtask, ...]
    uncovered: tuple[Uncovered, ...] = ()
    note: str = ""
    revision: int = 0
    """How often a subtask that got nowhere was planned anew."""

    @property
    def kernels(self) -> tuple[Subtask, ...]:
        """The subtasks whose candidates are kernels."""
        return tuple(s for s in self.subtasks if s.task is Task.KERNEL)

    @property
    def host(self) -> Subtask | None:
        """The subtask whose candidates are host programs, if there is one."""
        return next((s for s in self.subtasks if s.task is Task.PROGRAM), None)


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
    advice: Advice | None = None
    """What the Verifier recommended after it."""


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
    paused: bool = False
    """A human paused it; a kill does not end that, the session's end does."""
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
    usage: dict[str, Usage] = {}
    """What each role that is a model has used, by the role's name."""

    @property
    def used(self) -> Usage:
        """What all models together have used."""
        return sum(self.usage.values(), Usage(calls=0))

    @property
    def subtasks(self) -> tuple[Subtask, ...]:
        return self.plan.subtasks if self.plan else ()

    @property
    def pending(self) -> Iteration | None:
        """The iteration that was begun and has no commit."""
        last = self.iterations[-1] if self.iterations else None
        return last if last is not None and not last.commit else None

    @property
    def compiler(self) -> str:
        """What built last, ``nvcc 13.0.88 with g++``; empty before the first verdict with a build."""
        verdicts = (iteration.verdict for iteration in reversed(self.iterations))
        return next((v.build.compiler for v in verdicts if v and v.build), "")

    @property
    def kernels(self) -> tuple[Subtask, ...]:
        return self.plan.kernels if self.plan else ()

    @property
    def host(self) -> Subtask | None:
        return self.plan.host if self.plan else None

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
