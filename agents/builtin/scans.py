"""Which operators run along a dimension, and the space in which they do."""

from collections.abc import Sequence
from dataclasses import dataclass

from stitch_tui.agents.builtin import shapes
from stitch_tui.agents.builtin.ir import NotFusable, ScanRoot
from stitch_tui.agents.builtin.shapes import Shape
from stitch_tui.tools.graph import Graph, Node

SCANS = {"aten.cumsum.default": "scan_sum", "aten.cumprod.default": "scan_prod"}
FLIP = "aten.flip.default"


@dataclass(frozen=True)
class Scan:
    """A frame, the dimension along which it is scanned, and the direction."""

    frame: Shape
    axis: int
    reverse: bool

    def root(self) -> ScanRoot:
        length = self.frame[self.axis] if self.frame else 1
        rows = shapes.numel(self.frame) // max(length, 1)
        long = [d for d, n in enumerate(self.frame) if n != 1]
        return ScanRoot(self.axis, (rows, length), self.reverse, not long or long[-1] <= self.axis)


def common_scan(graph: Graph, nodes: Sequence[Node]) -> Scan | None:
    """The scan of all running sums among `nodes`, reversed where they stand between reversals.

    Raises:
        NotFusable: they run along different dimensions, or dimensions of something else are reversed.
    """
    running = [n for n in nodes if n.op in SCANS]
    if not running:
        return None
    found = {(n.spec.shape, _axis(n)) for n in running}
    if len(found) > 1:
        raise NotFusable("scans along different dimensions")
    frame, axis = found.pop()
    reversals = [n for n in nodes if n.op == FLIP]
    for node in reversals:
        dims = shapes.argument(node, 1, "dims")
        if node.spec.shape != frame or [d % len(frame) for d in dims] != [axis]:
            raise NotFusable("a reversal of another dimension than the scanned one")
    return Scan(frame, axis, bool(reversals))


def _axis(node: Node) -> int:
    return int(shapes.argument(node, 1, "dim")) % max(len(node.spec.shape), 1)
