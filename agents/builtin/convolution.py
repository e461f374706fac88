"""Convolution nodes as roots: what each overload's arguments mean."""

from collections.abc import Set
from typing import Any

from stitch_tui.agents.builtin import shapes
from stitch_tui.agents.builtin.ir import FLOATS, ConvRoot, Matrix, NotFusable
from stitch_tui.tools.graph import Graph, Node

LONGEST_SUM = 2**31 - 1


def root(graph: Graph, node: Node, inside: Set[str]) -> ConvRoot:
    """The root of a kernel around a convolution.

    Raises:
        NotFusable: operands computed in the same kernel, or of other types.
    """
    x, weight = (_operand(graph, argument, inside) for argument in node.args[:2])
    kernel = graph.spec(weight.value).shape[2:]
    spatial, transposed = len(kernel), "transpose" in node.op
    channel = len(node.spec.shape) - spatial - 1
    names = ("stride", "padding", "output_padding", "groups", "dilation") if transposed else ()
    order = names or ("stride", "padding", "dilation", "groups")
    given = {name: shapes.argument(node, 3 + i, name) for i, name in enumerate(order)}
    dilation = _each(given["dilation"], 1, spatial)
    groups = given["groups"] or 1
    inputs = graph.spec(x.value).shape[channel] // groups
    length = inputs * shapes.numel(kernel)
    if length > LONGEST_SUM:
        raise NotFusable("a convolution with more than 2^31 products in a sum")
    outputs = node.spec.shape[channel]
    return ConvRoot(
        x=x,
        weight=weight,
        kernel=kernel,
        stride=_each(given["stride"], 1, spatial),
        padding=_padding(given["padding"], kernel, dilation),
        dilation=dilation,
        output_padding=_each(given.get("output_padding"), 0, spatial),
        groups=groups,
        transposed=transposed,
        extents=(outputs // groups, node.spec.numel // max(outputs, 1), length),
    )


def _operand(graph: Graph, argument: Any, inside: Set[str]) -> Matrix:
    value = shapes.ref(argument)
    if value in inside:
        raise NotFusable(f"{value} feeds a convolution in the same kernel")
    spec = graph.spec(value)
    if spec.dtype not in FLOATS:
        raise NotFusable(f"a convolution of {spec.dtype}")
    return Matrix(value, spec.dtype, len(spec.shape))


def _each(given: Any, default: int, spatial: int) -> tuple[int, ...]:
    """One number for each dimension: a single one counts for all."""
    values = [default] if given is None else given if isinstance(given, (list, tuple)) else [given]
    return tuple(values) if len(values) == spatial else (values[0],) * spatial


def _padding(given: Any, kernel: shapes.Shape, dilation: shapes.Shape) -> tuple[tuple[int, int], ...]:
    """``same`` puts the odd zero behind."""
    if given == "same":
        whole = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        return tuple((w // 2, w - w // 2) for w in whole)
    return tuple((p, p) for p in _each(None if given == "valid" else given, 0, len(kernel)))
