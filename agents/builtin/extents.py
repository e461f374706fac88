"""Extents of values that are computed inside a kernel that moves elements."""

from collections.abc import Callable

from stitch_tui.agents.builtin import shapes
from stitch_tui.agents.builtin.ir import NotFusable
from stitch_tui.agents.builtin.places import Index, Reader, dim_of, operand, plus
from stitch_tui.tools.graph import Node

SIZES: dict[str, Callable[[Reader, Node, int], Index]] = {}


def _permuted_size(reader: Reader, node: Node, dim: int) -> Index:
    return reader.size(operand(node), shapes.order_of(node)[dim])


def _joined_size(reader: Reader, node: Node, dim: int) -> Index:
    values = [shapes.ref(v) for v in node.args[0]]
    if dim != dim_of(node, 1, len(node.spec.shape)):
        return reader.size(values[0], dim)
    total: Index = 0
    for value in values:
        total = plus(total, reader.size(value, dim))
    return total


def _padded_size(reader: Reader, node: Node, dim: int) -> Index:
    given = shapes.argument(node, 1, "pad")
    number = len(node.spec.shape) - 1 - dim
    more = sum(given[2 * number : 2 * number + 2])
    return plus(reader.size(operand(node), dim), more)


def _sliced_size(reader: Reader, node: Node, dim: int) -> Index:
    if dim == dim_of(node, 1, len(node.spec.shape)):
        raise NotFusable("an extent of a slice inside the kernel")
    return reader.size(operand(node), dim)


SIZES |= {"aten.slice.Tensor": _sliced_size}
SIZES |= dict.fromkeys(shapes.TRANSPOSES, _permuted_size)
SIZES |= {"aten.cat.default": _joined_size}
SIZES |= dict.fromkeys(("aten.pad.default", "aten.constant_pad_nd.default"), _padded_size)
SIZES |= dict.fromkeys(
    ("aten.flip.default", "aten.roll.default", "aten.tril.default", "aten.triu.default"),
    lambda reader, node, dim: reader.size(operand(node), dim),
)
