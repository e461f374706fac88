"""A model's plan as data, and the checks that make it a plan of ours.  Pure."""

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from stitch_tui.agents.builtin.shapes import is_free
from stitch_tui.agents.builtin.title import title_of
from stitch_tui.agents.host import route as host_route
from stitch_tui.agents.prompt_text import HOT, shares
from stitch_tui.agents.state import Bottleneck, Plan, Subtask, Uncovered
from stitch_tui.agents.structured import Rejected
from stitch_tui.tools.graph import Graph, InvalidRegion, Region, region_of

MOST_PROBLEMS = 8
"""Told to the model at once."""
TITLE = 80
"""Characters of a title."""
PLACEHOLDER = "short name"
"""What the prompt's example says in a title's place; weak models repeat it."""
UNNAMED = "not in the plan"


class PlannedSubtask(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: str
    nodes: list[str]
    bottleneck: Bottleneck = Bottleneck.UNKNOWN
    kernels: list[str] = []
    memory: str = ""
    compute: str = ""
    buffers: str = ""
    libraries: str = ""
    host: str = ""

    @property
    def strategy(self) -> str:
        """What the Coder is told."""
        named = {
            "bottleneck": str(self.bottleneck),
            "kernels": "; ".join(self.kernels),
            "memory": self.memory,
            "compute": self.compute,
            "buffers": self.buffers,
            "libraries": self.libraries,
            "host": self.host,
        }
        return "\n".join(f"{name}: {text}" for name, text in named.items() if text)


class LeftOut(BaseModel):
    model_config = ConfigDict(extra="forbid")

    nodes: list[str]
    reason: str


class PlanAnswer(BaseModel):
    """What a Planner that is a model answers."""

    model_config = ConfigDict(extra="forbid")

    analysis: str = ""
    subtasks: list[PlannedSubtask]
    left: list[LeftOut] = []
    host: str = ""
    """What the host side of the stitched program should do otherwise; empty: nothing."""


def checked_plan(
    graph: Graph,
    answer: PlanAnswer,
    *,
    within: Iterable[str] | None = None,
    taken: Sequence[Region] = (),
    first: int = 1,
    min_coverage: float = 0.0,
) -> Plan:
    """The plan that `answer` describes; a set that lacks only nodes in between is completed, and says so.

    Inputs and weights that stand among a subtask's nodes are passed over: its border has them anyway.

    Args:
        within: nodes that may be planned; None: all.
        taken: regions of subtasks that stay.
        first: number of the first new subtask.
        min_coverage: share of the time that the subtasks have to cover, those that stay included.

    Raises:
        Rejected: everything that is wrong with it, for the model.
    """
    problems: list[str] = []
    allowed = set(graph.node) if within is None else set(within)
    owned: dict[str, str] = {node: "a subtask that stays" for region in taken for node in region.nodes}
    subtasks: list[Subtask] = []
    notes: list[str] = []
    share = shares(graph)
    for number, planned in enumerate(answer.subtasks, first):
        nodes = [node for node in dict.fromkeys(planned.nodes) if node not in graph.source]
        name = f"subtask {number - first + 1} ({_line(planned.title)})"
        if unknown := [node for node in nodes if node not in graph.node]:
            problems.append(f"{name}: no such node: {', '.join(map(_line, unknown[:5]))}")
            continue
        if foreign := [node for node in nodes if node not in allowed]:
            problems.append(f"{name}: {foreign[0]} is not among the nodes to plan")
            continue
        if shared := [node for node in nodes if node in owned]:
            problems.append(f"{name}: {shared[0]} belongs to {owned[shared[0]]} already")
            continue
        try:
            region, added = _completed(graph, nodes, allowed - owned.keys())
        except InvalidRegion as fault:
            problems.append(f"{name}: {fault}")
            continue
        if added:
            notes.append(f"s{number:02d} was given {', '.join(added)} too, which lie between its nodes")
        owned |= dict.fromkeys(region.nodes, name)
        subtasks.append(_subtask(graph, number, planned, region, share))
    problems += _circle(graph, [*taken, *(subtask.region for subtask in subtasks)])
    problems += _omissions(answer, share, owned, allowed, min_coverage)
    if not answer.subtasks and not taken:
        problems.append("there is no subtask in it")
    if problems:
        raise Rejected("; ".join(problems[:MOST_PROBLEMS]))
    host = [host_route.subtask(strategy=answer.host.strip())] if answer.host.strip() and not taken else []
    return Plan(
        subtasks=(*subtasks, *host),
        uncovered=_uncovered(graph, answer.left, owned),
        note="\n".join(filter(None, [answer.analysis, *notes])),
    )


def _completed(graph: Graph, nodes: Sequence[str], free: set[str]) -> tuple[Region, list[str]]:
    """The region of `nodes`, with the nodes that lie between them where those are free.

    Raises:
        InvalidRegion: it is none, even so.
    """
    try:
        return region_of(graph, nodes), []
    except InvalidRegion as fault:
        whole = _hull(graph, set(nodes))
        added = sorted(whole - set(nodes), key=graph.position.__getitem__)
        if not added or not free.issuperset(added):
            raise fault
        return region_of(graph, whole), added


def _hull(graph: Graph, nodes: set[str]) -> set[str]:
    """`nodes`, those on paths between them, and the selections of their tuples."""
    below, above = set(nodes), set(nodes)
    for node in graph.nodes:
        if any(operand in below for operand in node.operands):
            below.add(node.id)
    for node in reversed(graph.nodes):
        if any(user in above for user in graph.users.get(node.id, ())):
            above.add(node.id)
    hull = nodes | (below & above)
    tuples = [name for name in hull if len(graph.node[name].outputs) > 1]
    return hull | {user for name in tuples for user in graph.users.get(name, ())}


def _circle(graph: Graph, regions: Sequence[Region]) -> list[str]:
    """Do subtasks wait for each other?"""
    owner = {node: at for at, region in enumerate(regions) for node in region.nodes}
    waits: dict[int | str, set[int | str]] = {}
    for node in graph.nodes:
        mine: int | str = owner.get(node.id, node.id)
        before = {owner.get(o, o) for o in node.operands if o in graph.node}
        waits.setdefault(mine, set()).update(before - {mine})
    done: set[int | str] = set()
    left = set(waits)
    while ready := {step for step in left if waits[step] <= done}:
        done |= ready
        left -= ready
    stuck = sorted(regions[step].nodes[0] for step in left if isinstance(step, int))
    return [f"the subtasks with {', '.join(stuck[:4])} wait for each other"] if stuck else []


def _omissions(
    answer: PlanAnswer,
    share: dict[str, float],
    owned: dict[str, str],
    allowed: set[str],
    min_coverage: float,
) -> list[str]:
    excused = {node for left in answer.left for node in left.nodes if left.reason.strip()}
    problems = [
        f"{node} takes {share[node]:.0%} of the time; it is in no subtask, and `left` gives no reason"
        for node in share
        if share[node] >= HOT and node in allowed and node not in owned and node not in excused
    ]
    covered = sum(share[node] for node in owned)
    if covered < min_coverage:
        problems.append(f"the subtasks cover {covered:.0%} of the time; {min_coverage:.0%} are wanted")
    return problems


def _subtask(
    graph: Graph, number: int, planned: PlannedSubtask, region: Region, share: dict[str, float]
) -> Subtask:
    part = min(sum(share[node] for node in region.nodes), 1.0)
    title = _line(planned.title)[:TITLE]
    title = "" if title == PLACEHOLDER else title
    return Subtask(
        id=f"s{number:02d}",
        title=title or title_of([graph.node[name] for name in region.nodes]),
        region=region,
        strategy=planned.strategy,
        share=part,
        amdahl=1 / (1 - part) if part < 1 - 1e-9 else None,
    )


def _uncovered(graph: Graph, left: Sequence[LeftOut], owned: dict[str, str]) -> tuple[Uncovered, ...]:
    """What stays with PyTorch, by reason; each node once."""
    reasons: dict[str, list[str]] = {}
    told = {node: _line(entry.reason) for entry in left for node in entry.nodes}
    for node in graph.nodes:
        if node.id not in owned:
            free = "a view, free in PyTorch" if is_free(node) else UNNAMED
            reasons.setdefault(told.get(node.id) or free, []).append(node.id)
    return tuple(Uncovered(nodes=tuple(nodes), reason=reason) for reason, nodes in reasons.items())


def _line(text: str) -> str:
    return "".join(c for c in " ".join(text.split()) if c.isprintable())
