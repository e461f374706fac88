"""Graph nodes -> one `Subtask`, or the reason why they cannot be one kernel.

Legality is decided here and only here: the planner tries a region, and what lowers is what can be
emitted.  A value is lowered in a *frame*, the shape in which its consumer looks at it; a view changes
the frame and costs nothing as long as the order of the elements is the same.
"""

from collections.abc import Callable
from typing import Any

from stitch_tui.agents.builtin import convolution, operators, pools, scans, shapes
from stitch_tui.agents.builtin.ir import (
    FLOATS,
    MAX_RANK,
    Access,
    Align,
    ConvRoot,
    GemmRoot,
    Kind,
    Matrix,
    NotFusable,
    PoolRoot,
    Register,
    Root,
    Store,
    Subtask,
    constant_along_rows,
    register_of,
)
from stitch_tui.agents.builtin.lower_index import IndexLowering, moves_elements
from stitch_tui.agents.builtin.plain_values import converted, literal, promoted, require_plain_semantics
from stitch_tui.agents.builtin.region_lowering import RegionLowering
from stitch_tui.agents.builtin.row_space import common_space, keeps_shape
from stitch_tui.agents.builtin.row_values import RowValues
from stitch_tui.agents.builtin.scalar import Expr
from stitch_tui.agents.builtin.shapes import Shape
from stitch_tui.agents.builtin.title import title_of
from stitch_tui.tools.graph import Graph, Node, Region


def lower(graph: Graph, region: Region) -> Subtask:
    """The kernel that computes `region`.

    Raises:
        NotFusable: an operator without a template, or shapes that do not meet in one space.
    """
    nodes = [graph.node[n] for n in region.nodes]
    if any(map(moves_elements, nodes)) and not any(_has_root(n) for n in nodes):
        return IndexLowering(graph, region).subtask()
    return _Lowering(graph, region).subtask()


def _has_root(node: Node) -> bool:
    known = shapes.PRODUCTS | shapes.CONVOLUTIONS | pools.NAMES
    return node.op in known or node.op in operators.ROWS or node.op in scans.SCANS


class _Lowering(RegionLowering, RowValues):
    def __init__(self, graph: Graph, region: Region) -> None:
        super().__init__(graph, region)
        self.exprs: dict[tuple[str, Shape, bool], Expr] = {}
        self.tuples: dict[tuple[str, Shape, bool], tuple[Expr, ...]] = {}
        self.product = self._only(lambda n: n.op in shapes.PRODUCTS | shapes.CONVOLUTIONS, "product")
        self.convolves = self.product is not None and self.product.op in shapes.CONVOLUTIONS
        self.rows = common_space(graph, self.nodes)
        self.window = self._only(pools.is_window, "pooling")
        self.scan = scans.common_scan(graph, self.nodes)
        self.flipped = False
        self.frame = self._frame()

    def subtask(self) -> Subtask:
        self._require_supported()
        kind, root = self._root()
        dag = self._dag([self._store(value) for value in self.region.outputs])
        self._require_all_read(_operands(root))
        return Subtask(
            kind=kind,
            region=self.region,
            title=title_of(self.nodes),
            rank=len(self.frame) + bool(self.rows and self.rows.groups),
            points=shapes.numel(self.frame),
            accesses=tuple(self.accesses),
            dag=dag,
            root=root,
        )

    # What the region is built around

    def _only(self, wanted: Callable[[Node], bool], what: str) -> Node | None:
        found = [n for n in self.nodes if wanted(n)]
        if len(found) > 1:
            raise NotFusable(f"more than one {what}")
        return found[0] if found else None

    def _frame(self) -> Shape:
        if len([x for x in (self.rows, self.product, self.window, self.scan) if x]) > 1:
            raise NotFusable("two operations that each want a kernel of their own")
        if self.rows:
            return self.rows.frame
        if self.scan:
            return self.scan.frame
        if not self.region.outputs:
            raise NotFusable("nothing leaves the region")
        return (self.product or self.window or self.graph.node[self.region.outputs[0]]).spec.shape

    def _require_supported(self) -> None:
        if len(self.frame) > MAX_RANK:
            raise NotFusable(f"more than {MAX_RANK} dimensions")
        for node in self.nodes:
            if len(node.outputs) != 1 and node.op not in operators.TUPLES:
                raise NotFusable(f"no template for {node.op}, which returns several tensors")
            register_of(node.spec.dtype)

    # Roots

    def _root(self) -> tuple[Kind, Root | None]:
        if self.product and self.convolves:
            return Kind.CONV, convolution.root(self.graph, self.product, self.inside)
        if self.product:
            return Kind.GEMM, self._gemm_root()
        if self.window:
            return Kind.POOL, pools.pool_root(self.graph, self.window, self.inside)
        if self.scan:
            return Kind.SCAN, self.scan.root()
        return (Kind.ROWS, self.rows.root()) if self.rows else (Kind.POINTWISE, None)

    def _gemm_root(self) -> GemmRoot:
        node = self.product
        assert node is not None
        first = 1 if node.op in ("aten.addmm.default", "aten.baddbmm.default") else 0
        a = self._matrix(node.args[first], False)
        b = self._matrix(node.args[first + 1], node.op == "aten.linear.default")
        if min(a.rank, b.rank) < 2 or len(node.spec.shape) < 2:
            raise NotFusable("a product with a vector")
        inner = self.graph.spec(a.value).shape[-2 if a.transposed else -1]
        m, n = node.spec.shape[-2:]
        if b.rank == 2:
            m = shapes.numel(node.spec.shape[:-1])
        return GemmRoot(a, b, batched=b.rank > 2, extents=(m, n, inner))

    def _matrix(self, argument: Any, transposed: bool) -> Matrix:
        value = shapes.ref(argument)
        while value in self.inside:
            node = self.graph.node[value]
            if not shapes.is_transpose_of_last_two(node):
                raise NotFusable(f"{node.op} feeds a matrix product in the same kernel")
            value, transposed = shapes.ref(node.args[0]), not transposed
        spec = self.graph.spec(value)
        if spec.dtype not in FLOATS:
            raise NotFusable(f"a matrix product of {spec.dtype}")
        return Matrix(value, spec.dtype, len(spec.shape), transposed)

    # Frames

    def _align(self, shape: Shape, frame: Shape, contiguous: bool) -> Align:
        """How a tensor of `shape`, looked at in `frame`, meets the space."""
        if frame == self.frame or (self.rows and frame == self.rows.kept):
            return Align.BROADCAST
        if self.rows and frame == self.rows.dropped:
            return Align.ROW
        if shapes.numel(frame) != shapes.numel(self.frame):
            raise NotFusable("a value of another size")
        same_last = bool(frame) and bool(self.frame) and frame[-1] == self.frame[-1]
        if self.product and not self.convolves and not same_last:
            raise NotFusable("a view that cuts through rows")
        if shape == frame and contiguous:
            return Align.RESHAPED
        if len(shape) <= 1 and same_last:
            return Align.BROADCAST
        raise NotFusable("a broadcast behind a view")

    def _load(self, value: str, frame: Shape) -> Expr:
        spec = self.graph.spec(value)
        align = self._align(spec.shape, frame, shapes.is_contiguous(spec.shape, spec.strides))
        if len(spec.shape) > len(self.frame) and align is not Align.RESHAPED:
            raise NotFusable("an operand with more dimensions than the result")
        per_row = self.rows is not None and self.rows.is_per_row(frame)
        return self._read(Access(value, spec.dtype, len(spec.shape), align, per_row=per_row))

    def _read(self, access: Access) -> Expr:
        if self.flipped:
            raise NotFusable("an operand that is not reversed in a reversed scan")
        if access not in self.accesses:
            self.accesses.append(access)
        return self.program.add("load", register_of(access.dtype), literal=self.accesses.index(access))

    def _store(self, value: str) -> Store:
        spec = self.graph.spec(value)
        per_row = self.rows is not None and self.rows.is_per_row(spec.shape)
        if not per_row and self._is_per_row(value) and spec.shape != self.frame:
            raise NotFusable("a row value that leaves in another shape")
        align = self._align(spec.shape, spec.shape, shapes.is_contiguous(spec.shape, spec.strides))
        expr = self.value(value, spec.shape)
        if per_row and not constant_along_rows(self.program.instrs, self.accesses)[expr.index]:
            raise NotFusable("a broadcast operand computed along the row")
        self.accesses.append(Access(value, spec.dtype, len(spec.shape), align, output=True, per_row=per_row))
        return Store(expr.index, len(self.accesses) - 1)

    def _is_per_row(self, value: str) -> bool:
        node = self.graph.node[value]
        return self.rows is not None and node.op in operators.ROWS and not keeps_shape(node)

    # Values

    def value(self, value: str, frame: Shape) -> Expr:
        """The scalar program of a value, seen in `frame`."""
        if value not in self.inside:
            return self._load(value, frame)
        key = (value, frame, self.flipped)
        if key not in self.exprs:
            self.exprs[key] = self._node(self.graph.node[value], frame)
        return self.exprs[key]

    def _node(self, node: Node, frame: Shape) -> Expr:
        if self.product is not None and node.id == self.product.id:
            return self._product(node, frame)
        if self.window is not None and node.id == self.window.id:
            if frame != node.spec.shape:
                raise NotFusable("a pooling that is broadcast")
            return self.program.add("root", Register.F32)
        if node.op in scans.SCANS or node.op == scans.FLIP:
            return self._scan(node, frame)
        if node.op == "getitem":
            return self._item(node, frame)
        if node.op in operators.ROWS:
            return self._results(node.id, frame)[0]
        if shapes.is_view(node):
            return self._view(node, frame)
        if node.op in operators.IDENTITY:
            return self.value(shapes.ref(node.args[0]), frame)
        if node.op in operators.CASTS:
            return converted(self.value(shapes.ref(node.args[0]), frame), node.spec.dtype, narrow=True)
        if node.op in operators.POINTWISE:
            return self._results(node.id, frame)[0]
        raise NotFusable(f"no template for {node.op}")

    def _view(self, node: Node, frame: Shape) -> Expr:
        source = self.graph.spec(shapes.ref(node.args[0])).shape
        if self.rows and node.spec.shape == self.rows.kept and self.rows.is_per_row(source):
            return self.value(shapes.ref(node.args[0]), source)
        if node.spec.shape != frame:
            raise NotFusable("a view that is broadcast")
        return self.value(shapes.ref(node.args[0]), source)

    def _product(self, node: Node, frame: Shape) -> Expr:
        if frame != node.spec.shape:
            raise NotFusable("a product that is broadcast")
        acc = self.program.add("root", Register.F32)
        if self.convolves:
            offset = self._channel(shapes.argument(node, 2, "bias"), frame)
            return acc if offset is None else acc + offset
        if node.op == "aten.linear.default":
            bias = shapes.argument(node, 2, "bias")
            return acc if bias is None else acc + self.value(shapes.ref(bias), frame)
        if node.op in ("aten.addmm.default", "aten.baddbmm.default"):
            alpha, beta = node.kwargs.get("alpha", 1), node.kwargs.get("beta", 1)
            scaled = acc if alpha == 1 else acc * alpha
            if beta == 0:
                raise NotFusable("beta = 0 ignores an operand")
            bias = self.value(shapes.ref(node.args[0]), frame)
            return scaled + (bias if beta == 1 else bias * beta)
        return acc

    def _pointwise(self, node: Node, frame: Shape) -> Expr | tuple[Expr, ...]:
        require_plain_semantics(self.graph, node)
        operator = operators.POINTWISE[node.op]
        target = promoted(self.graph, node)
        cast: Callable[[Expr], Expr] = (lambda e: e.to(target)) if operator.promote else (lambda e: e)
        channels = operators.CHANNELS.get(node.op, ())
        if channels and self.convolves:
            self._require_batch()
        arguments = [
            self._channel(a, frame) if position in channels else self._argument(a, frame, cast)
            for position, a in enumerate(node.args)
        ]
        named = {k: self._argument(v, frame, cast) for k, v in node.kwargs.items()}
        found = operator.formula(*arguments, **named)
        return found if isinstance(found, tuple) else converted(found, node.spec.dtype, narrow=False)

    def _require_batch(self) -> None:
        """A convolution takes single images too; what follows would take their rows for channels."""
        assert self.product is not None
        if len(self.product.spec.shape) != len(self.graph.spec(shapes.ref(self.product.args[1])).shape):
            raise NotFusable("a norm of a single image")

    def _argument(self, argument: Any, frame: Shape, cast: Callable[[Expr], Expr]) -> Any:
        if isinstance(argument, dict) and set(argument) == {"ref"}:
            return cast(self.value(argument["ref"], frame))
        return literal(argument)


def _operands(root: Root | None) -> tuple[str, ...]:
    """Values that it reads itself."""
    if isinstance(root, GemmRoot):
        return root.a.value, root.b.value
    if isinstance(root, ConvRoot):
        return root.x.value, root.weight.value
    return (root.value,) if isinstance(root, PoolRoot) else ()
