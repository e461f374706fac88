"""How much of the reference's time custom kernels really cover."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from stitch_tui.tools.graph import Graph, Node, Region

BALANCE = 20.0
"""FLOPs for each byte at which a current GPU is as busy computing (fp32) as moving memory."""


class Basis(StrEnum):
    """What the share was computed from, best first."""

    MEASURED = "measured"
    """Measured time of each node."""
    ROOFLINE = "roofline"
    """Roofline bound of each node on the session's device."""
    ESTIMATE = "estimate"
    """FLOPs and bytes of each node, no device."""


@dataclass(frozen=True)
class Coverage:
    """Share of the reference's time, 0 to 1, whose nodes custom kernels own."""

    share: float
    basis: Basis


def coverage(graph: Graph, regions: Iterable[Region]) -> Coverage:
    """The share of the reference's time spent in nodes of `regions`.

    Measured times count when every node that does any work has one; then roofline bounds; else
    ``max(bytes, FLOPs / BALANCE)``.
    """
    owned = {node for region in regions for node in region.nodes}
    basis, cost = _basis(graph)
    total = sum(cost(node) for node in graph.nodes)
    covered = sum(cost(node) for node in graph.nodes if node.id in owned)
    return Coverage(covered / total if total > 0 else 0.0, basis)


def _basis(graph: Graph) -> tuple[Basis, Callable[[Node], float]]:
    working = [node for node in graph.nodes if _estimate(node) > 0]
    if working and all(node.time_us is not None for node in working):
        return Basis.MEASURED, lambda node: node.time_us or 0.0
    if working and all(node.bound_us is not None for node in working):
        return Basis.ROOFLINE, lambda node: node.bound_us or 0.0
    return Basis.ESTIMATE, _estimate


def _estimate(node: Node) -> float:
    return max(node.bytes_moved, node.flops / BALANCE)
