"""Which operators look through windows, and the windows' geometry."""

from collections.abc import Collection
from typing import Any

from stitch_tui.agents.builtin import shapes
from stitch_tui.agents.builtin.ir import FLOATS, NotFusable, PoolRoot
from stitch_tui.tools.graph import Graph, Node

_MAXIMA = {f"aten.max_pool{n}d.default": n for n in (1, 2, 3)}
_MEANS = {f"aten.avg_pool{n}d.default": n for n in (1, 2, 3)}
_ADAPTIVE_MEANS = {f"aten.adaptive_avg_pool{n}d.default": n for n in (1, 2, 3)}
_ADAPTIVE_MAXIMA = {f"aten.adaptive_max_pool{n}d.default": n for n in (1, 2, 3)}
TUPLES = frozenset(_ADAPTIVE_MAXIMA)
"""Those that return places too, which have no template."""
_DIMS = _MAXIMA | _MEANS | _ADAPTIVE_MEANS | _ADAPTIVE_MAXIMA
NAMES = frozenset(_DIMS)


def is_window(node: Node) -> bool:
    """Whether the node is a pooling, other than a mean over everything, which is a reduction."""
    return node.op in _DIMS and not (node.op in _ADAPTIVE_MEANS and _global(node))


def _global(node: Node) -> bool:
    return all(n == 1 for n in shapes.argument(node, 1, "output_size"))


def pool_root(graph: Graph, node: Node, inside: Collection[str]) -> PoolRoot:
    """The windows of one pooling.

    Raises:
        NotFusable: its operand is computed in the same kernel, or is not a float.
    """
    value, dims = shapes.ref(node.args[0]), _DIMS[node.op]
    if value in inside:
        raise NotFusable("a window over values that are computed in the same kernel")
    spec = graph.spec(value)
    if spec.dtype not in FLOATS:
        raise NotFusable(f"windows over {spec.dtype}")
    maximum = node.op in _MAXIMA or node.op in _ADAPTIVE_MAXIMA
    if node.op in _ADAPTIVE_MEANS or node.op in _ADAPTIVE_MAXIMA:
        ones, zeros = (1,) * dims, (0,) * dims
        return PoolRoot(value, spec.dtype, maximum, (), ones, zeros, ones, False, False, 0, spec.shape)
    sizes = _each(shapes.argument(node, 1, "kernel_size"), dims)
    dilation = _each(shapes.argument(node, 4, "dilation", 1), dims) if maximum else (1,) * dims
    return PoolRoot(
        value=value,
        dtype=spec.dtype,
        maximum=maximum,
        sizes=sizes,
        steps=_each(shapes.argument(node, 2, "stride") or sizes, dims),
        padding=_each(shapes.argument(node, 3, "padding", 0), dims),
        dilation=dilation,
        ceil=bool(shapes.argument(node, 5 if maximum else 4, "ceil_mode", False)),
        count_padding=not maximum and bool(shapes.argument(node, 5, "count_include_pad", True)),
        divisor=0 if maximum else int(shapes.argument(node, 6, "divisor_override") or 0),
        extents=spec.shape,
    )


def _each(given: Any, dims: int) -> tuple[int, ...]:
    """One number for all dimensions, or one for each."""
    numbers = [given] if isinstance(given, int) else list(given)
    return tuple(numbers * dims if len(numbers) == 1 else numbers)
