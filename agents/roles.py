"""The roles as interfaces.  Each has a built-in implementation and one that asks a model."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from stitch_tui.agents.state import Advice, Candidate, Iteration, Plan, Session, Subtask
from stitch_tui.tools.graph import Graph
from stitch_tui.tools.race import Race
from stitch_tui.tools.roofline import Peaks
from stitch_tui.tools.verdict import Verdict


@dataclass(frozen=True)
class PlanBrief:
    """What a Planner is told."""

    graph: Graph
    """Its times say what removing a node wins."""
    source: str
    """The reference's source text."""
    device: str
    notes: tuple[str, ...] = ()
    """The task doctor's findings."""
    peaks: Peaks | None = None
    """What the device can do at best; None on the emulator, or where it is not known."""
    hardware: str = ""
    """The device, described for a model."""
    system: str = ""
    """Where the time of a whole pass goes, for a model."""


@dataclass(frozen=True)
class HostBrief:
    """What a Coder is told about the host program beside the subtask."""

    text: str
    """Of the best one so far."""
    own: str
    """Of the one that stitch writes for these kernels."""
    program: Verdict
    """On the stitched program with `text`."""


@dataclass(frozen=True)
class CodeBrief:
    """What a Coder is told about one subtask."""

    graph: Graph
    subtask: Subtask
    device: str
    attempts: tuple[Iteration, ...] = ()
    """Earlier attempts at this subtask, oldest first, without those that were cancelled."""
    best: Iteration | None = None
    """The best correct attempt: where to start from."""
    source: str = ""
    """The reference's source text."""
    hardware: str = ""
    host: HostBrief | None = None
    """Of the subtask whose candidates are host programs."""


@dataclass(frozen=True)
class AdviceBrief:
    """What an Adviser is told: one judged attempt, and those before it."""

    graph: Graph
    subtask: Subtask
    attempt: Iteration
    earlier: tuple[Iteration, ...] = ()
    hardware: str = ""


class Planner(Protocol):
    async def plan(self, brief: PlanBrief) -> Plan:
        """Cut the program into subtasks, hottest first."""
        ...

    async def replan(self, brief: PlanBrief, session: Session, failed: Subtask, reason: str) -> Plan | None:
        """Other subtasks for the nodes of one that got nowhere; None when there is no other way to cut."""
        ...


class Coder(Protocol):
    async def code(self, brief: CodeBrief) -> Candidate | None:
        """The next attempt, or None when there is nothing left to try."""
        ...

    def variants(self, brief: CodeBrief, most: int) -> tuple[Candidate, ...]:
        """Candidates for a race before the first attempt, the likeliest first; fewer than two: no race."""
        ...


class Verifier(Protocol):
    async def verify(self, iteration: int, subtask: Subtask, source: Path) -> Verdict:
        """Judge one candidate alone, against the same nodes of the reference."""
        ...

    async def race(self, subtask: Subtask, sources: Mapping[str, str], seconds: float) -> Race:
        """Time candidates beside each other, whether they are correct or not.

        Args:
            sources: by name, the likeliest first.
            seconds: for all of it.
        """
        ...

    async def verify_program(self, iteration: int, bundle: Path, *, replaces: Path | None = None) -> Verdict:
        """Judge the stitched program end to end.

        Args:
            replaces: the bundle with the host program that a candidate shall replace.
        """
        ...


class Adviser(Protocol):
    async def advise(self, brief: AdviceBrief) -> Advice | None:
        """What to change next, from what the Verifier measured; None: nothing to say."""
        ...
