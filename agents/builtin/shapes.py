"""Which nodes the built-in Coder knows, and the shapes that decide whether they fuse."""

from typing import Any

from stitch_tui.agents.builtin import operators
from stitch_tui.agents.builtin.ir import NotFusable
from stitch_tui.tools.graph import Node

Shape = tuple[int, ...]

PRODUCTS = frozenset(f"aten.{name}.default" for name in ("linear", "mm", "bmm", "matmul", "addmm", "baddbmm"))
CONVOLUTIONS = frozenset(
    (
        *(f"aten.conv{d}d.{overload}" for d in (1, 2, 3) for overload in ("default", "padding")),
        *("aten.conv_transpose1d.default", "aten.conv_transpose2d.input", "aten.conv_transpose3d.input"),
    )
)
TRANSPOSES = frozenset({"aten.t.default", "aten.transpose.int", "aten.permute.default"})
FREE = frozenset(
    f"aten.{name}"
    for name in (
        "unbind.int",
        "split.Tensor",
        "split_with_sizes.default",
        "chunk.default",
        "select.int",
        "slice.Tensor",
        "expand.default",
        "alias.default",
        "detach.default",
    )
) | {"getitem"}
FULL_SHAPE_ROWS = frozenset(
    f"aten.{name}"
    for name in (
        "softmax.int",
        "_softmax.default",
        "log_softmax.int",
        "_log_softmax.default",
        "layer_norm.default",
        "rms_norm.default",
    )
)


def numel(shape: Shape) -> int:
    n = 1
    for extent in shape:
        n *= extent
    return n


def argument(node: Node, position: int, name: str, default: Any = None) -> Any:
    """An argument given by position or by name."""
    if position < len(node.args):
        return node.args[position]
    return node.kwargs.get(name, default)


def ref(value: Any) -> str:
    """The value id inside ``{"ref": id}``.

    Raises:
        NotFusable: the argument is not a tensor.
    """
    if isinstance(value, dict) and set(value) == {"ref"}:
        return str(value["ref"])
    raise NotFusable("an operand that is not a tensor")


def is_view(node: Node) -> bool:
    """Whether the node moves no data and keeps the order of elements."""
    return node.op in operators.RESHAPES


def is_free(node: Node) -> bool:
    """Whether the node only makes views: no kernel runs in PyTorch either."""
    return is_view(node) or node.op in TRANSPOSES or node.op in FREE


def is_plain(node: Node) -> bool:
    """Whether the node alone is no work: a view, a copy or a broadcast."""
    return is_view(node) or node.op in operators.IDENTITY or node.op in TRANSPOSES


def is_pointwise(node: Node) -> bool:
    return node.op in operators.POINTWISE or node.op in operators.CASTS or node.op in operators.IDENTITY


def order_of(node: Node) -> list[int]:
    """For each dimension of the result, the one of the operand."""
    rank = len(node.spec.shape)
    if node.op == "aten.permute.default":
        return [d % rank for d in argument(node, 1, "dims")]
    order = list(range(rank))
    if node.op == "aten.t.default":
        return order[::-1]
    a, b = (int(argument(node, 1 + i, f"dim{i}")) % rank for i in (0, 1))
    order[a], order[b] = order[b], order[a]
    return order


def is_transpose_of_last_two(node: Node) -> bool:
    """Whether the node swaps the last two dimensions and nothing else."""
    rank = len(node.spec.shape)
    return node.op in TRANSPOSES and order_of(node) == [*range(rank - 2), rank - 1, rank - 2]


def is_contiguous(shape: Shape, strides: Shape | None) -> bool:
    """Do elements of that shape lie one after the other?  Without strides they do."""
    if strides is None or 0 in shape:
        return True
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True
