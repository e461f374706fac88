"""The built-in Planner: cuts a graph into regions that the built-in Coder can write, hottest first."""

from collections.abc import Iterable
from dataclasses import dataclass

from stitch_tui.agents.builtin import coder, cost, operators, pools, scans, shapes
from stitch_tui.agents.builtin.fusion import grow
from stitch_tui.agents.builtin.index_maps import MOVES
from stitch_tui.agents.builtin.ir import NotFusable, Subtask
from stitch_tui.agents.builtin.lower import lower
from stitch_tui.agents.builtin.lower_index import is_copy
from stitch_tui.agents.state import Work
from stitch_tui.tools.graph import Graph, InvalidRegion, Node, Region, region_of
from stitch_tui.tools.roofline import Peaks

TINY = 1024
"""Elements up to which a kernel takes no longer than its launch."""


@dataclass(frozen=True)
class Proposal:
    """One subtask that the Planner proposes."""

    region: Region
    title: str
    strategy: str
    """A sentence: what is fused, and how the first attempt does it."""
    share: float
    """Part of the reference's time that these nodes take, 0..1."""
    time_us: float
    amdahl: float
    """Speedup of the whole program if this subtask took no time; inf when it is all there is."""
    bound_us: float | None
    """Roofline bound of the region as one kernel; None without a device."""
    work: Work | None
    measured: bool
    """False: `share` and `time_us` rest on estimates, since the graph carries no times."""


@dataclass(frozen=True)
class Leftover:
    """A node that stays with PyTorch."""

    node: str
    op: str
    reason: str
    share: float


@dataclass(frozen=True)
class Cut:
    """A graph cut into subtasks; `leftovers` lower the coverage."""

    proposals: tuple[Proposal, ...]
    leftovers: tuple[Leftover, ...]
    coverage: float
    """Part of the reference's time in `proposals`, 0..1."""


def plan(graph: Graph, device: str = "", peaks: Peaks | None = None) -> Cut:
    """Regions for everything that has a template, hottest first, and the reasons for the rest.

    Args:
        device: as for `coder.strategies`: it decides what the first attempt is.
        peaks: of the device, for bounds, and to know which convolutions PyTorch's library does faster; they
            are tried all the same when there is nothing else.
    """
    slow = frozenset(n.id for n in graph.nodes if cost.library_wins(graph, n, peaks))
    groups = _groups(graph, slow) or _groups(graph, frozenset())
    if device.startswith("cuda"):
        groups = [group for group in groups if not _is_one_tiny_launch(graph, group)] or groups
    total = sum(cost.node_us(graph, n) for n in graph.nodes)
    proposals = [_proposal(graph, region_of(graph, group), total, device, peaks) for group in groups]
    proposals.sort(key=lambda p: (-p.share, graph.position[p.region.nodes[0]]))
    taken = {node for group in groups for node in group}
    left = tuple(_leftover(graph, n, total, slow) for n in graph.nodes if n.id not in taken)
    return Cut(tuple(proposals), left, sum(p.share for p in proposals))


def _is_one_tiny_launch(graph: Graph, group: frozenset[str]) -> bool:
    """One pointwise operator on a few numbers, such as a counter: a launch of PyTorch's or one of ours."""
    nodes = [graph.node[name] for name in group]
    return len(nodes) == 1 and shapes.is_pointwise(nodes[0]) and nodes[0].spec.numel <= TINY


def _groups(graph: Graph, excluded: frozenset[str]) -> list[frozenset[str]]:
    """The nodes of each kernel, none of them around an excluded one."""
    groups: list[frozenset[str]] = []
    taken: dict[str, int] = {}
    rows = operators.ROWS.keys() | pools.NAMES | scans.SCANS.keys()
    for anchors in (shapes.PRODUCTS | shapes.CONVOLUTIONS, rows, MOVES.keys(), None):
        # the last of several moves takes the others in, as they feed it
        for node in reversed(graph.nodes) if anchors == MOVES.keys() else graph.nodes:
            if node.id in taken or node.id in excluded or not _is_anchor(graph, node, anchors):
                continue
            if group := grow(graph, node, groups, taken):
                taken |= dict.fromkeys(group, len(groups))
                groups.append(group)
    return groups


def _is_anchor(graph: Graph, node: Node, anchors: Iterable[str] | None) -> bool:
    if anchors is None:
        return shapes.is_pointwise(node) and (not shapes.is_plain(node) or is_copy(graph, node))
    return node.op in anchors and not shapes.is_free(node)


def _proposal(graph: Graph, region: Region, total: float, device: str, peaks: Peaks | None) -> Proposal:
    subtask = lower(graph, region)
    time = sum(cost.node_us(graph, graph.node[n]) for n in region.nodes)
    share = time / total if total else 0.0
    return Proposal(
        region=region,
        title=subtask.title,
        strategy=_sentence(subtask, device),
        share=share,
        time_us=time,
        amdahl=1 / (1 - share) if share < 1 - 1e-12 else float("inf"),
        bound_us=cost.bound_us(graph, region, peaks),
        work=cost.work(graph, region, peaks),
        measured=all(graph.node[n].time_us is not None for n in region.nodes),
    )


def _sentence(subtask: Subtask, device: str) -> str:
    nodes = len(subtask.region.nodes)
    merged = f"{nodes} operators in one {subtask.kind} kernel" if nodes > 1 else f"One {subtask.kind} kernel"
    return f"{merged}. {coder.strategies(subtask, device)[0].sentence}"


def _leftover(graph: Graph, node: Node, total: float, slow: frozenset[str]) -> Leftover:
    share = cost.node_us(graph, node) / total if total else 0.0
    faster = f"PyTorch's library is faster ({node.time_us:.1f} us)" if node.id in slow else ""
    return Leftover(node.id, node.op, faster or _reason(graph, node), share)


def _reason(graph: Graph, node: Node) -> str:
    if shapes.is_free(node):
        return "a view, free in PyTorch"
    if shapes.is_plain(node) and not is_copy(graph, node):
        return "a copy outside every kernel"
    if len(node.outputs) > 1 and node.op not in operators.TUPLES:
        return f"no template for {node.op}"
    try:
        lower(graph, region_of(graph, [node.id]))
        if _is_one_tiny_launch(graph, frozenset({node.id})):
            return "a few numbers: one launch, whoever's it is"
    except (NotFusable, InvalidRegion) as reason:
        return str(reason)
    return "its results are computed elsewhere"
