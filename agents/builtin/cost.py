"""What a region must at least do: FLOPs, bytes, time measured in the reference, roofline bound."""

from collections.abc import Iterable

from stitch_tui.agents.builtin import shapes
from stitch_tui.agents.state import Work
from stitch_tui.tools import roofline
from stitch_tui.tools.graph import DType, Graph, Node, Region
from stitch_tui.tools.roofline import Peaks

LAUNCH_US = 2.0
OWN_CONVOLUTION, HALFWAY = 0.3, 64
"""Part of a GPU's fp32 peak that the tiled convolution reaches for long sums, and the length of the sums for
which it reaches half of that: 29.6 GFLOP in 1515 us with sums of 2304, 3.6 in 523 us with sums of 27."""
UNMEASURED = (50e6, 3e6)
"""FLOPs and bytes per microsecond that stand in for a measurement: they only rank subtasks."""


def node_flops(graph: Graph, node: Node) -> float:
    """The judge's figure, or 2MNK for a product or convolution, one per element for anything else."""
    if node.flops or shapes.is_free(node):
        return node.flops
    if node.op in shapes.PRODUCTS:
        position = 1 if "addmm" in node.op or "baddbmm" in node.op else 0
        inner = graph.spec(shapes.ref(node.args[position])).shape[-1]
        return 2.0 * node.spec.numel * inner
    if node.op in shapes.CONVOLUTIONS:
        weight = graph.spec(shapes.ref(node.args[1])).shape
        seen = graph.spec(shapes.ref(node.args[0])).numel if "transpose" in node.op else node.spec.numel
        return 2.0 * seen * shapes.numel(weight[1:])
    return float(node.spec.numel)


def region_flops(graph: Graph, nodes: Iterable[str]) -> float:
    return sum(node_flops(graph, graph.node[n]) for n in nodes)


def region_bytes(graph: Graph, region: Region) -> int:
    """Bytes that cross the border: the least that any kernel moves."""
    return sum(graph.spec(v).nbytes for v in (*region.inputs, *region.outputs))


def work(graph: Graph, region: Region, peaks: Peaks | None) -> Work | None:
    """The region's least work as one kernel; None where the device's peaks are not known."""
    if peaks is None:
        return None
    return Work(
        flops=region_flops(graph, region.nodes),
        bytes_moved=region_bytes(graph, region),
        peak_flops=peaks.flops(_widest(graph, region)),
        bandwidth=peaks.bandwidth,
        source=peaks.source,
    )


def bound_us(graph: Graph, region: Region, peaks: Peaks | None) -> float | None:
    """Roofline bound of the region as one kernel; None where the device's peaks are not known."""
    if peaks is None:
        return None
    flops, moved = region_flops(graph, region.nodes), region_bytes(graph, region)
    return roofline.bound_us(flops, moved, _widest(graph, region), peaks)


def _widest(graph: Graph, region: Region) -> DType:
    """The widest type of the region's results."""
    return max((graph.spec(value).dtype for value in region.outputs), key=lambda dtype: dtype.size)


def node_us(graph: Graph, node: Node) -> float:
    """Measured time, or an estimate that only ranks nodes."""
    if node.time_us is not None:
        return node.time_us
    if shapes.is_free(node):
        return 0.0
    moved = node.bytes_moved or node.spec.nbytes + sum(graph.spec(v).nbytes for v in node.operands)
    flops, bandwidth = UNMEASURED
    return LAUNCH_US + max(node_flops(graph, node) / flops, moved / bandwidth)


def library_wins(graph: Graph, node: Node, peaks: Peaks | None) -> bool:
    """Whether PyTorch's convolution took less time than ours would, what fusing saves taken off.

    cuDNN may use tensor cores where our kernels compute in fp32.
    """
    if peaks is None or node.time_us is None or node.op not in shapes.CONVOLUTIONS:
        return False
    length = shapes.numel(graph.spec(shapes.ref(node.args[1])).shape[1:])
    reached = OWN_CONVOLUTION * peaks.f32 * length / (length + HALFWAY)
    own = 1e6 * node_flops(graph, node) / reached
    saved = 1e6 * 2 * node.spec.nbytes / peaks.bandwidth
    return own > node.time_us + saved


def sentence(graph: Graph, region: Region) -> str:
    """The region's least work, for the head of a file."""
    flops, moved = region_flops(graph, region.nodes), region_bytes(graph, region)
    text = f"At the reference's sizes: {flops:.4g} FLOPs, at least {moved} bytes to move"
    return f"{text} ({flops / moved:.3g} FLOPs a byte)." if moved else f"{text}."
