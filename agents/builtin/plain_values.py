"""What pointwise operators share, however their operands are read: promotion, and arguments refused."""

from stitch_tui.agents.builtin import shapes
from stitch_tui.agents.builtin.ir import FLOATS, NotFusable, Register, register_of
from stitch_tui.tools.graph import Graph, Node


def require_plain_semantics(graph: Graph, node: Node) -> None:
    """Raise where a pointwise operator is not one with these arguments."""
    if node.op == "aten.dropout.default" and shapes.argument(node, 2, "train"):
        raise NotFusable("dropout in training mode")
    if node.op == "aten.prelu.default":
        slopes = graph.spec(shapes.ref(node.args[1])).numel
        if slopes != 1 and len(node.spec.shape) != 2:
            raise NotFusable("slopes along a dimension that is not the last")


def promoted(graph: Graph, node: Node) -> Register:
    """The type in which a pointwise operator computes: float as soon as anything is."""
    if node.spec.dtype in FLOATS:
        return Register.F32
    given = [register_of(graph.spec(v).dtype) for v in node.operands]
    numbers = [a for a in node.args if isinstance(a, (int, float))]
    if Register.F32 in given or any(isinstance(a, float) for a in numbers):
        return Register.F32
    if Register.I64 in given or any(not isinstance(a, bool) for a in numbers):
        return Register.I64
    return Register.BOOL
