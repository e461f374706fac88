"""The built-in Planner and Coder in the roles that the workflow knows."""

from itertools import groupby

from stitch_tui.agents import diagnosis
from stitch_tui.agents.builtin import coder, planner
from stitch_tui.agents.builtin.planner import Leftover, Proposal
from stitch_tui.agents.builtin.shapes import CONVOLUTIONS, PRODUCTS
from stitch_tui.agents.roles import AdviceBrief, CodeBrief, PlanBrief
from stitch_tui.agents.state import Advice, Candidate, Iteration, Plan, Session, Subtask, Uncovered
from stitch_tui.tools.graph import DType, Graph, Region
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.race import Race
from stitch_tui.tools.speed_of_light import least_work


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
    """Attempts are the strategies of the region's kind, those first that act on the best one's disease.

    After a race of the variants they are its contestants, the fastest first, until one of them is correct.
    """

    def __init__(self) -> None:
        self._coder = coder.BuiltinCoder()

    async def code(self, brief: CodeBrief) -> Candidate | None:
        """The next strategy; None when all were tried, and for the host program, which is the stitcher's."""
        if brief.subtask.is_host:
            return None
        advice, race = brief.best.advice if brief.best else None, brief.subtask.race
        attempt = self._coder.attempt(
            brief.graph,
            brief.subtask.region,
            device=brief.device,
            tried=[a.candidate.strategy for a in brief.attempts if a.candidate and a.kind is not Kind.HUMAN],
            disease=advice.disease if advice else None,
            race=race,
            found=race is not None and any(_is_right_contestant(race, a) for a in brief.attempts),
        )
        return None if attempt is None else _announced(attempt)

    def variants(self, brief: CodeBrief, most: int) -> tuple[Candidate, ...]:
        """The likeliest sets of parameters, up to `most`."""
        region = brief.subtask.region
        made = self._coder.variants(brief.graph, region, device=brief.device, most=most)
        return tuple(map(_announced, made))


def _is_right_contestant(race: Race, attempt: Iteration) -> bool:
    """Is it one of those that were timed, and correct?  A human's code says nothing of them."""
    timed = attempt.candidate is not None and attempt.candidate.strategy in race.times
    return timed and attempt.outcome in (Outcome.KEPT, Outcome.SLOWER)


def _announced(candidate: coder.Candidate) -> Candidate:
    return Candidate(source=candidate.source, strategy=candidate.strategy, note=candidate.note)


class BuiltinAdviser:
    """The rules of `diagnosis` on the profile of an attempt; nothing to say of one without a profile."""

    async def advise(self, brief: AdviceBrief) -> Advice | None:
        verdict = brief.attempt.verdict
        if verdict is None or verdict.profile is None or not verdict.correct:
            return None
        return diagnosis.advice(verdict.profile, work_of(brief.graph, brief.subtask.region))


def work_of(graph: Graph, region: Region) -> diagnosis.Work:
    """What the rules ask of a region.  Tensor cores are for half precision only.

    What the user lets fp32 be computed in is not the graph's to say.
    """
    nodes = [graph.node[name] for name in region.nodes]
    products = [node for node in nodes if node.op in PRODUCTS | CONVOLUTIONS]
    halves = any(node.outputs[0].dtype in (DType.F16, DType.BF16) for node in products)
    least = least_work(graph, region)
    return diagnosis.Work(bool(products), halves, float(least.read + least.written))


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
