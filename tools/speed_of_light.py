"""The least that any program for a region must move and multiply: a bound that no honest time is below.

It must never accuse, so it counts only what is beyond doubt.  Bytes of an activation count when every one
of its elements takes part in the result: a slice, gather, embedding, strided convolution or mask in between
ends that.  A weight counts only where nothing but elementwise work follows its product: sums behind it could
be folded into it when it is bound.  Products count only of operands that come from outside, so that nothing
could be reordered.  Results may stay in the L2 cache.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from stitch_tui.tools.graph import Graph, Node, Region, ValueKind, references
from stitch_tui.tools.roofline import Peaks, bound_us

L2_BYTES = 128 << 20
"""More than any GPU's L2 cache (B200: 126 MB): so many bytes of results may never have left it."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ELEMENTWISE = _names(
    "relu gelu silu sigmoid tanh exp expm1 log1p sqrt rsqrt abs neg softplus mish elu selu leaky_relu"
    " hardswish erf sin cos add sub rsub mul div"
)
"""Every element of every operand matters to an element of the result."""
VIEWS = _names(
    "view reshape _unsafe_view flatten unflatten permute transpose t contiguous clone squeeze unsqueeze"
    " alias detach movedim swapaxes"
)
"""The same elements in another order or shape."""
ROWS = _names(
    "softmax _softmax log_softmax _log_softmax layer_norm native_layer_norm rms_norm group_norm"
    " instance_norm sum mean var std amax amin argmax argmin prod logsumexp linalg_vector_norm norm cumsum"
    " cumprod flip cat stack adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d"
)
"""All of their operand is read, whatever comes of it."""
PRODUCTS = _names("mm bmm matmul linear addmm baddbmm mv addmv dot")
CONVOLUTIONS = _names("conv1d conv2d conv3d")


@dataclass(frozen=True)
class Least:
    """What a region's program cannot avoid."""

    read: int
    """Bytes of inputs."""
    written: int
    """Bytes of results."""
    flops: float
    """Of products."""


def least_us(graph: Graph, region: Region, peaks: Peaks | None) -> float | None:
    """Microseconds that no program for the region can beat with a cold cache; None without peaks."""
    if peaks is None:
        return None
    least = least_work(graph, region)
    moved = least.read + max(0, least.written - L2_BYTES)
    return bound_us(least.flops, moved, graph.spec(region.outputs[0]).dtype, peaks)


def least_work(graph: Graph, region: Region) -> Least:
    """Bytes and products beyond doubt, at the graph's shapes."""
    inside = [graph.node[name] for name in region.nodes]
    whole = _whole(graph, region, inside)
    kept = _kept(region, inside)
    products = [node for node in inside if _name(node) in PRODUCTS and node.id in kept]
    weights = {source for node in products for source in _weights_of(graph, node)}
    read = sum(
        graph.spec(value).nbytes
        for value in region.inputs
        if not _expanded(graph, value) and (value in weights if _is_state(graph, value) else value in whole)
    )
    written = sum(graph.spec(value).nbytes for value in region.outputs)
    flops = sum(node.flops for node in products if _from_outside(graph, node))
    return Least(read, written, flops)


def _whole(graph: Graph, region: Region, inside: Sequence[Node]) -> set[str]:
    """Values all of whose elements the results depend on."""
    whole = set(region.outputs)
    for node in reversed(inside):
        if node.id in whole and _reads_all(graph, node):
            whole.update(node.operands)
    return whole


def _kept(region: Region, inside: Sequence[Node]) -> set[str]:
    """Values that reach a result through elementwise work and views alone."""
    kept = set(region.outputs)
    for node in reversed(inside):
        if node.id in kept and len(node.outputs) == 1 and _name(node) in ELEMENTWISE | VIEWS:
            kept.update(node.operands)
    return kept


def _reads_all(graph: Graph, node: Node) -> bool:
    """Does each element of the node's operands matter to its result, whatever their values?"""
    name, operands = _name(node), node.operands
    if len(node.outputs) != 1 or len(list(references((node.args, node.kwargs)))) != len(operands):
        return False  # x - x needs no x
    if name in VIEWS:
        return len(operands) == 1 and graph.spec(operands[0]).numel == node.spec.numel
    if name in ELEMENTWISE:
        return not any(number == 0 for number in _numbers(node))
    if name in ROWS:
        return not (name.endswith("softmax") and graph.spec(operands[0]).shape[int(node.args[1])] == 1)
    if name in CONVOLUTIONS:
        return _dense(graph, node)
    return name in PRODUCTS and min(graph.spec(value).numel for value in operands) > 0


def _dense(graph: Graph, node: Node) -> bool:
    """A convolution of stride and dilation 1 over at least a window reads every element."""
    stride, dilation = _argument(node, 3, "stride", 1), _argument(node, 5, "dilation", 1)
    if any(extent != 1 for value in (stride, dilation) for extent in _list(value)):
        return False
    spatial = graph.spec(node.operands[0]).shape[2:]
    return all(n >= k for n, k in zip(spatial, graph.spec(node.operands[1]).shape[2:], strict=False))


def _weights_of(graph: Graph, node: Node) -> Iterator[str]:
    """Parameters and buffers that a product multiplies with something that is none."""
    sources = [_source(graph, operand) for operand in _factors(node)]
    if sum(_is_state(graph, source) for source in sources) == 1:
        yield from (source for source in sources if _is_state(graph, source))


def _from_outside(graph: Graph, node: Node) -> bool:
    """Are both factors different values that no node but a view made?"""
    sources = [_source(graph, operand) for operand in _factors(node)]
    return len(set(sources)) == 2 and all(source in graph.source for source in sources)


def _factors(node: Node) -> list[str]:
    """The two tensors that a product multiplies; what it adds to their product stands before or after."""
    first = 1 if _name(node) in ("addmm", "baddbmm", "addmv") else 0
    return [value for argument in node.args[first : first + 2] for value in references(argument)]


def _source(graph: Graph, value: str) -> str:
    """The value behind views."""
    while value in graph.node and _name(graph.node[value]) in VIEWS and graph.node[value].operands:
        value = graph.node[value].operands[0]
    return value


def _is_state(graph: Graph, value: str) -> bool:
    return graph.kind(value) in (ValueKind.PARAMETER, ValueKind.BUFFER, ValueKind.CONSTANT)


def _expanded(graph: Graph, value: str) -> bool:
    """Does it repeat elements, so that a program could do with one of each?"""
    strides = graph.spec(value).strides
    return strides is not None and 0 in strides


def _name(node: Node) -> str:
    return node.op.split(".")[1] if "." in node.op else node.op


def _numbers(node: Node) -> list[float]:
    """Plain numbers among the operands of elementwise work: a factor of 0 makes all else irrelevant."""
    return [argument for argument in node.args if isinstance(argument, (int, float))]


def _argument(node: Node, position: int, name: str, default: Any) -> Any:
    return node.args[position] if position < len(node.args) else node.kwargs.get(name, default)


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
