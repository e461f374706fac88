"""The built-in Planner and Coder in the roles that the workflow knows."""

from itertools import groupby

from stitch_tui.agents.builtin import coder, planner
from stitch_tui.agents.builtin.planner import Leftover, Proposal
from stitch_tui.agents.roles import CodeBrief, PlanBrief
from stitch_tui.agents.state import Candidate, Plan, Session, Subtask, Uncovered
from stitch_tui.tools.iteration import Kind


class BuiltinPlanner:
    """Fusion by legality; see `planner.plan`."""

    async def plan(self, brief: PlanBrief) -> Plan:
        cut = planner.plan(brief.graph, brief.device, brief.peaks)
        return Plan(
            subtasks=tuple(_subtask(number, p) for number, p in enumerate(cut.proposals, 1)),
            uncovered=_uncovered(cut.leftovers),
        )

    async def replan(self, brief: PlanBrief, session: Session, failed: Subtask, reason: str) -> Plan | None:
        """None: legality and cost give one cut only."""
        return None


class BuiltinCoder:
    """Attempts are the strategies of the region's kind, in order."""

    def __init__(self) -> None:
        self._coder = coder.BuiltinCoder()

    async def code(self, brief: CodeBrief) -> Candidate | None:
        tried = sum(attempt.kind is not Kind.HUMAN for attempt in brief.attempts)
        attempt = self._coder.attempt(brief.graph, brief.subtask.region, tried, device=brief.device)
        if attempt is None:
            return None
        return Candidate(source=attempt.source, strategy=attempt.strategy, note=attempt.note)


def _subtask(number: int, proposal: Proposal) -> Subtask:
    return Subtask(
        id=f"s{number:02d}",
        title=proposal.title,
        region=proposal.region,
        strategy=proposal.strategy,
        share=proposal.share,
        amdahl=proposal.amdahl if proposal.amdahl != float("inf") else None,
        bound_us=proposal.bound_us,
        work=proposal.work,
    )


def _uncovered(leftovers: tuple[Leftover, ...]) -> tuple[Uncovered, ...]:
    """Leftovers with the same reason, in one entry."""
    ordered = sorted(leftovers, key=lambda left: left.reason)
    return tuple(
        Uncovered(nodes=tuple(left.node for left in group), reason=reason)
        for reason, group in groupby(ordered, key=lambda left: left.reason)
    )
