"""Graph nodes -> one `Subtask`, or the reason why they cannot be one kernel.

Legality is decided here and only here: the planner tries a region, and what lowers is what can be
emitted.  A value is lowered in a *frame*, the shape in which its consumer looks at it; a view changes
the frame and costs nothing as long as the order of the elements is the same.
"""

from collections.abc import Callable
from typing import Any

from stitch_tui.agents.builtin import c_scalar, convolution, operators, shapes
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
    Register,
    RowsRoot,
    ScalarDag,
    Store,
    Subtask,
    constant_along_rows,
    register_of,
)
from stitch_tui.agents.builtin.lower_index import IndexLowering, moves_elements
from stitch_tui.agents.builtin.plain_values import converted, literal, promoted, require_plain_semantics
from stitch_tui.agents.builtin.scalar import Expr, Program
from stitch_tui.agents.builtin.shapes import Shape
from stitch_tui.agents.builtin.title import title_of
from stitch_tui.tools.graph import DType, Graph, Node, Region

EPSILON = {DType.F32: 2.0**-23, DType.F16: 2.0**-10, DType.BF16: 2.0**-7}
Root = GemmRoot | ConvRoot | RowsRoot | None
_KINDS = {GemmRoot: Kind.GEMM, ConvRoot: Kind.CONV, RowsRoot: Kind.ROWS, type(None): Kind.POINTWISE}


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
    return node.op in shapes.PRODUCTS | shapes.CONVOLUTIONS or node.op in operators.ROWS


class _Lowering:
    def __init__(self, graph: Graph, region: Region) -> None:
        self.graph, self.region = graph, region
        self.nodes = [graph.node[n] for n in region.nodes]
        self.inside = set(region.nodes)
        self.program = Program()
        self.accesses: list[Access] = []
        self.exprs: dict[tuple[str, Shape], Expr] = {}
        self.product = self._only(shapes.PRODUCTS | shapes.CONVOLUTIONS, "product")
        self.convolves = self.product is not None and self.product.op in shapes.CONVOLUTIONS
        self.rows = self._row_geometry()
        self.frame = self._frame()

    def subtask(self) -> Subtask:
        self._require_supported()
        root = self._root()
        stores = tuple(self._store(value) for value in self.region.outputs)
        for instr in self.program.instrs:
            if not c_scalar.supported(instr):
                raise NotFusable(f"{instr.op} of {instr.register}")
        self._require_all_reads_used(root)
        return Subtask(
            kind=_KINDS[type(root)],
            region=self.region,
            title=title_of(self.nodes),
            rank=len(self.frame),
            points=shapes.numel(self.frame),
            accesses=tuple(self.accesses),
            dag=ScalarDag(tuple(self.program.instrs), stores),
            root=root,
        )

    # What the region is built around

    def _only(self, names: frozenset[str], what: str) -> Node | None:
        found = [n for n in self.nodes if n.op in names]
        if len(found) > 1:
            raise NotFusable(f"more than one {what}")
        return found[0] if found else None

    def _row_geometry(self) -> tuple[Shape, int, int] | None:
        """Element frame, first reduced axis and number of reduced axes, the same for all reductions."""
        found = {
            (self.graph.spec(shapes.ref(n.args[0])).shape, *shapes.row_axes(self.graph, n))
            for n in self.nodes
            if n.op in operators.ROWS
        }
        if len(found) > 1:
            raise NotFusable("reductions over different rows")
        if found and self.product:
            raise NotFusable("a reduction over rows of a product")
        return found.pop() if found else None

    def _frame(self) -> Shape:
        if self.rows:
            return self.rows[0]
        if not self.region.outputs:
            raise NotFusable("nothing leaves the region")
        return (self.product or self.graph.node[self.region.outputs[0]]).spec.shape

    def _require_supported(self) -> None:
        if len(self.frame) > MAX_RANK:
            raise NotFusable(f"more than {MAX_RANK} dimensions")
        for node in self.nodes:
            if len(node.outputs) != 1:
                raise NotFusable(f"{node.op} returns several tensors")
            register_of(node.spec.dtype)

    def _require_all_reads_used(self, root: Root) -> None:
        read = {a.value for a in self.accesses}
        if isinstance(root, GemmRoot):
            read |= {root.a.value, root.b.value}
        if isinstance(root, ConvRoot):
            read |= {root.x.value, root.weight.value}
        if unused := [v for v in self.region.inputs if v not in read]:
            raise NotFusable(f"{unused[0]} is not needed for any result")

    # Roots

    def _root(self) -> Root:
        if self.convolves:
            assert self.product is not None
            return convolution.root(self.graph, self.product, self.inside)
        return self._gemm_root() if self.product else self._rows_root() if self.rows else None

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
            if not shapes.is_transpose_of_last_two(self.graph, node):
                raise NotFusable(f"{node.op} feeds a matrix product in the same kernel")
            value, transposed = shapes.ref(node.args[0]), not transposed
        spec = self.graph.spec(value)
        if spec.dtype not in FLOATS:
            raise NotFusable(f"a matrix product of {spec.dtype}")
        return Matrix(value, spec.dtype, len(spec.shape), transposed)

    def _rows_root(self) -> RowsRoot:
        assert self.rows is not None
        frame, axis, inner = self.rows
        length = shapes.numel(frame[axis : axis + inner])
        return RowsRoot(axis, inner, (shapes.numel(frame) // max(length, 1), length))

    # Frames

    def _row_frames(self) -> tuple[Shape, Shape]:
        """The shapes of one value per row, with and without the reduced dimensions."""
        if not self.rows:
            return (), ()
        frame, axis, inner = self.rows
        return frame[:axis] + (1,) * inner + frame[axis + inner :], frame[:axis] + frame[axis + inner :]

    def _align(self, shape: Shape, frame: Shape, contiguous: bool) -> Align:
        """How a tensor of `shape`, looked at in `frame`, meets the space."""
        kept, dropped = self._row_frames()
        if frame == self.frame or (self.rows and frame == kept):
            return Align.BROADCAST
        if self.rows and frame == dropped and self.rows[2] == 1:
            return Align.ROW
        if shapes.numel(frame) != shapes.numel(self.frame):
            raise NotFusable("a value of another size")
        same_last = bool(frame) and bool(self.frame) and frame[-1] == self.frame[-1]
        if (self.rows or self.product) and not same_last and not self.convolves:
            raise NotFusable("a view that cuts through rows")
        if shape == frame and contiguous:
            return Align.RESHAPED
        if len(shape) <= 1 and same_last:
            return Align.BROADCAST
        raise NotFusable("a broadcast behind a view")

    def _load(self, value: str, frame: Shape) -> Expr:
        spec = self.graph.spec(value)
        align = self._align(spec.shape, frame, _is_contiguous(spec.shape, spec.strides))
        if len(spec.shape) > len(self.frame) and align is not Align.RESHAPED:
            raise NotFusable("an operand with more dimensions than the result")
        self._require_row_broadcast(spec.shape, align)
        per_row = bool(self.rows) and frame in self._row_frames() and frame != self.frame
        access = Access(value, spec.dtype, len(spec.shape), align, per_row=per_row)
        if access not in self.accesses:
            self.accesses.append(access)
        return self.program.add("load", register_of(spec.dtype), literal=self.accesses.index(access))

    def _require_row_broadcast(self, shape: Shape, align: Align) -> None:
        """Several reduced dimensions are walked as one: an operand must vary along all or none."""
        if not self.rows or self.rows[2] == 1 or align is not Align.BROADCAST:
            return
        _, axis, inner = self.rows
        tail = ((1,) * len(self.frame) + shape)[-inner:]
        if tail != self.frame[axis:] and any(extent != 1 for extent in tail):
            raise NotFusable("an operand that varies along a part of the row")

    def _store(self, value: str) -> Store:
        spec = self.graph.spec(value)
        kept, dropped = self._row_frames()
        per_row = bool(self.rows) and spec.shape in (kept, dropped) and spec.shape != self.frame
        if not per_row and self._is_per_row(value):
            raise NotFusable("a row value that leaves in another shape")
        align = self._align(spec.shape, spec.shape, _is_contiguous(spec.shape, spec.strides))
        expr = self.value(value, spec.shape)
        if per_row and not constant_along_rows(self.program.instrs, self.accesses)[expr.index]:
            raise NotFusable("a broadcast operand computed along the row")
        self.accesses.append(Access(value, spec.dtype, len(spec.shape), align, output=True, per_row=per_row))
        return Store(expr.index, len(self.accesses) - 1)

    def _is_per_row(self, value: str) -> bool:
        return self.graph.node[value].op in operators.ROWS and not _keeps_shape(self.graph.node[value])

    # Values

    def value(self, value: str, frame: Shape) -> Expr:
        """The scalar program of a value, seen in `frame`."""
        if value not in self.inside:
            return self._load(value, frame)
        if (value, frame) not in self.exprs:
            self.exprs[value, frame] = self._node(self.graph.node[value], frame)
        return self.exprs[value, frame]

    def _node(self, node: Node, frame: Shape) -> Expr:
        if self.product is not None and node.id == self.product.id:
            return self._product(node, frame)
        if node.op in operators.ROWS:
            return self._reduction(node, frame)
        if shapes.is_view(node):
            return self._view(node, frame)
        if node.op in operators.IDENTITY:
            return self.value(shapes.ref(node.args[0]), frame)
        if node.op in operators.CASTS:
            return converted(self.value(shapes.ref(node.args[0]), frame), node.spec.dtype, narrow=True)
        if node.op in operators.POINTWISE:
            return self._pointwise(node, frame)
        raise NotFusable(f"no template for {node.op}")

    def _view(self, node: Node, frame: Shape) -> Expr:
        source = self.graph.spec(shapes.ref(node.args[0])).shape
        kept, dropped = self._row_frames()
        if self.rows and node.spec.shape == kept and source in (kept, dropped):
            return self.value(shapes.ref(node.args[0]), source)
        if node.spec.shape != frame:
            raise NotFusable("a view that is broadcast")
        return self.value(shapes.ref(node.args[0]), source)

    def _product(self, node: Node, frame: Shape) -> Expr:
        if frame != node.spec.shape:
            raise NotFusable("a product that is broadcast")
        acc = self.program.add("root", Register.F32)
        if self.convolves:
            bias = shapes.argument(node, 2, "bias")
            return acc if bias is None else acc + self._channel(shapes.ref(bias))
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

    def _channel(self, value: str) -> Expr:
        """A value with one element for each channel."""
        if value in self.inside:
            raise NotFusable(f"{value} is computed in the same kernel as the convolution that it belongs to")
        spec = self.graph.spec(value)
        access = Access(value, spec.dtype, 1, Align.CHANNEL)
        if access not in self.accesses:
            self.accesses.append(access)
        return self.program.add("load", register_of(spec.dtype), literal=self.accesses.index(access))

    def _reduction(self, node: Node, frame: Shape) -> Expr:
        assert self.rows is not None
        kept, _ = self._row_frames()
        whole = self.rows[0]
        if frame not in (
            (whole,) if _keeps_shape(node) else (node.spec.shape, *self._frames_over(node, kept))
        ):
            raise NotFusable(f"{node.id} is broadcast across rows")
        if node.spec.dtype not in FLOATS:
            raise NotFusable(f"a reduction to {node.spec.dtype}")
        _require_known_order(node)
        arguments = [self._row_argument(a, whole) for a in node.args]
        named = {
            k: self._row_argument(v, whole) for k, v in node.kwargs.items() if k not in ("dtype", "keepdim")
        }
        if node.op == "aten.rms_norm.default" and shapes.argument(node, 3, "eps") is None:
            named["eps"] = EPSILON[self.graph.spec(shapes.ref(node.args[0])).dtype]
            arguments = arguments[:3]
        return operators.ROWS[node.op](*arguments, **named)

    def _frames_over(self, node: Node, kept: Shape) -> tuple[Shape, ...]:
        """A result that keeps its reduced dimensions may be broadcast back along the row."""
        return (self.frame,) if node.spec.shape == kept else ()

    def _row_argument(self, argument: Any, frame: Shape) -> Any:
        if isinstance(argument, dict) and set(argument) == {"ref"}:
            return self.value(argument["ref"], frame).to(Register.F32)
        return literal(argument)

    def _pointwise(self, node: Node, frame: Shape) -> Expr:
        require_plain_semantics(self.graph, node)
        operator = operators.POINTWISE[node.op]
        target = promoted(self.graph, node)
        cast: Callable[[Expr], Expr] = (lambda e: e.to(target)) if operator.promote else (lambda e: e)
        arguments = [self._argument(a, frame, cast) for a in node.args]
        named = {k: self._argument(v, frame, cast) for k, v in node.kwargs.items()}
        return converted(operator.formula(*arguments, **named), node.spec.dtype, narrow=False)

    def _argument(self, argument: Any, frame: Shape, cast: Callable[[Expr], Expr]) -> Any:
        if isinstance(argument, dict) and set(argument) == {"ref"}:
            return cast(self.value(argument["ref"], frame))
        return literal(argument)


def _keeps_shape(node: Node) -> bool:
    return node.op in shapes.FULL_SHAPE_ROWS


def _require_known_order(node: Node) -> None:
    if node.op == "aten.linalg_vector_norm.default" and shapes.argument(node, 1, "ord", 2) not in (1, 2):
        raise NotFusable("a norm other than 1 or 2")


def _is_contiguous(shape: Shape, strides: Shape | None) -> bool:
    if strides is None or 0 in shape:
        return True
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True
