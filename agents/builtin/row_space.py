"""The space of a reduction: which dimensions are reduced, and how results without them lie in it."""

from collections.abc import Sequence
from dataclasses import dataclass

from stitch_tui.agents.builtin import operators, pools, shapes
from stitch_tui.agents.builtin.ir import NotFusable, RowsRoot
from stitch_tui.agents.builtin.shapes import Shape
from stitch_tui.tools.graph import Graph, Node

BATCH_NORMS = frozenset(
    {"aten._native_batch_norm_legit_functional.default", "aten._native_batch_norm_legit.no_stats"}
)
GROUP_NORM = "aten.group_norm.default"
INSTANCE_NORM = "aten.instance_norm.default"
VECTOR_NORMS = frozenset({"aten.linalg_vector_norm.default", "aten.norm.ScalarOpt_dim", "aten.norm.Scalar"})
LINALG_NORM = "aten.linalg_norm.default"
COSINE = "aten.cosine_similarity.default"
ADAPTIVE_MEANS = {f"aten.adaptive_avg_pool{n}d.default": n for n in (1, 2, 3)}
_TRAILING = frozenset({"aten.layer_norm.default", "aten.rms_norm.default"})
_FULL = frozenset({GROUP_NORM, INSTANCE_NORM}) | shapes.FULL_SHAPE_ROWS


@dataclass(frozen=True)
class RowSpace:
    """A frame of elements and its reduced dimensions."""

    frame: Shape
    axes: tuple[int, ...]
    """Of the frame; with `groups`, dimension 1 stands for the part of it inside a group."""
    groups: int = 0
    """If not 0, dimension 1 is cut into so many groups, and rows are inside one."""

    @property
    def kept(self) -> Shape | None:
        """The shape of one value for each row with the reduced dimensions as 1."""
        if self.groups:
            return None
        return tuple(1 if d in self.axes else n for d, n in enumerate(self.frame))

    @property
    def dropped(self) -> Shape | None:
        """The shape of one value for each row without the reduced dimensions."""
        if self.groups:
            return None
        return tuple(n for d, n in enumerate(self.frame) if d not in self.axes)

    @property
    def leading(self) -> bool:
        """Whether a value without the reduced dimensions, aligned to the right, lies where they were kept."""
        return self.axes == tuple(range(len(self.axes)))

    def is_per_row(self, shape: Shape) -> bool:
        """Whether a frame is that of one value for each row."""
        return shape != self.frame and shape in (self.kept, self.dropped)

    def root(self) -> RowsRoot:
        """With axes of the space, in which a cut dimension is two."""
        length = 1
        for axis in self.axes:
            length *= self.frame[axis]
        if self.groups:
            length = length // self.groups if self.frame[1] else 0
        axes = tuple(a + 1 for a in self.axes) if self.groups else self.axes
        long = [d for d, n in enumerate(self.frame) if n != 1]
        along = not long or not self.axes or long[-1] in self.axes
        rows = shapes.numel(self.frame) // max(length, 1)
        return RowsRoot(axes, (rows, length), self.groups, along, self._run())

    def _run(self) -> int:
        """The extent of the last dimensions, as far as they are reduced."""
        run = 1
        for axis in reversed(range(len(self.frame))):
            if axis not in self.axes:
                break
            run *= self.frame[axis] // (self.groups if self.groups and axis == 1 else 1)
        return run


def common_space(graph: Graph, nodes: Sequence[Node]) -> RowSpace | None:
    """The space of all reductions among `nodes`; None when there are none.

    Raises:
        NotFusable: they reduce over different rows.
    """
    found = {row_space(graph, n) for n in nodes if n.op in operators.ROWS and not pools.is_window(n)}
    if len(found) > 1:
        raise NotFusable("reductions over different rows")
    return found.pop() if found else None


def row_space(graph: Graph, node: Node) -> RowSpace:
    """Where one operator reduces.

    Raises:
        NotFusable: a form of the operator that has no template.
    """
    frame = graph.spec(shapes.ref(node.args[0])).shape
    rank = len(frame)
    if node.op == GROUP_NORM:
        return RowSpace(frame, tuple(range(1, rank)), int(shapes.argument(node, 1, "num_groups")))
    if node.op == COSINE and graph.spec(shapes.ref(node.args[1])).shape != frame:
        raise NotFusable("a similarity of tensors of different shapes")
    return RowSpace(frame, _axes(node, rank))


def _axes(node: Node, rank: int) -> tuple[int, ...]:
    if node.op in BATCH_NORMS:
        return (0, *range(2, rank))
    if node.op == INSTANCE_NORM:
        return tuple(range(2, rank))
    if node.op in ADAPTIVE_MEANS:
        return tuple(range(rank - ADAPTIVE_MEANS[node.op], rank))
    if node.op in _TRAILING:
        return tuple(range(rank - len(shapes.argument(node, 1, "normalized_shape")), rank))
    given = _dims(node)
    if given is None or given == []:
        return tuple(range(rank))
    return tuple(sorted({d % rank for d in _many(given)})) if rank else ()


def _dims(node: Node) -> int | Sequence[int] | None:
    if node.op in VECTOR_NORMS or node.op == LINALG_NORM:
        dims: int | Sequence[int] | None = shapes.argument(node, 2, "dim")
        order = shapes.argument(node, 1, "ord")
        if node.op == LINALG_NORM and order is not None and (dims is None or len(_many(dims)) != 1):
            raise NotFusable("a norm of matrices")
        return dims
    if node.op == COSINE:
        return int(shapes.argument(node, 2, "dim", 1))
    given: int | Sequence[int] | bool | None = shapes.argument(node, 1, "dim")
    return None if isinstance(given, bool) else given


def _many(dims: int | Sequence[int]) -> Sequence[int]:
    return [dims] if isinstance(dims, int) else dims


def keeps_shape(node: Node) -> bool:
    """Whether the (first) result has the operand's shape: norms and softmax."""
    return node.op in _FULL or node.op in BATCH_NORMS
