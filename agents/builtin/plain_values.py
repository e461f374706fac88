"""What pointwise operators share, however their operands are read: promotion, literals, conversions."""

import math
from typing import Any

from stitch_tui.agents.builtin import shapes
from stitch_tui.agents.builtin.ir import FLOATS, NotFusable, Register, register_of
from stitch_tui.agents.builtin.scalar import Expr, Operand
from stitch_tui.tools.graph import DType, Graph, Node


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


def literal(argument: Any) -> Operand | Any:
    """A constant argument of a graph node as Python has it."""
    if isinstance(argument, dict) and set(argument) == {"float"}:
        return float(argument["float"])
    if isinstance(argument, dict):
        raise NotFusable(f"an argument that no template knows: {next(iter(argument.values()))}")
    if isinstance(argument, float) and math.isnan(argument):
        raise NotFusable("a NaN constant")
    return argument


def converted(expr: Expr, dtype: DType, *, narrow: bool) -> Expr:
    """To the register of `dtype`; integers wrap, and an explicit cast (`narrow`) rounds f16 and bf16."""
    moved = expr.to(register_of(dtype))
    if dtype in (DType.F16, DType.BF16):
        return moved.rounded(f"round_{dtype}") if narrow else moved
    if dtype in (DType.I32, DType.I16, DType.I8, DType.U8):
        return moved.rounded(f"wrap_{dtype}")
    return moved
