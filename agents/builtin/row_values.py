"""Values of row operators and scans in a region: which frame each operand is seen in, and what comes out."""

from abc import ABC, abstractmethod
from typing import Any

from stitch_tui.agents.builtin import operators, pools, scans, shapes
from stitch_tui.agents.builtin.ir import FLOATS, Access, Align, NotFusable, Register, register_of
from stitch_tui.agents.builtin.operators import Operands
from stitch_tui.agents.builtin.plain_values import converted, literal
from stitch_tui.agents.builtin.row_space import BATCH_NORMS, INSTANCE_NORM, RowSpace, keeps_shape
from stitch_tui.agents.builtin.scalar import Expr
from stitch_tui.agents.builtin.scans import Scan
from stitch_tui.agents.builtin.shapes import Shape
from stitch_tui.tools.graph import DType, Graph, Node

EPSILON = {DType.F32: 2.0**-23, DType.F16: 2.0**-10, DType.BF16: 2.0**-7}


class RowValues(ABC):
    """The part of lowering that knows rows; `lower` does the rest."""

    graph: Graph
    inside: set[str]
    frame: Shape
    rows: RowSpace | None
    scan: Scan | None
    flipped: bool
    """Whether the values now lowered run against the scanned dimension."""
    tuples: dict[tuple[str, Shape, bool], tuple[Expr, ...]]

    @abstractmethod
    def value(self, value: str, frame: Shape) -> Expr: ...

    @abstractmethod
    def _read(self, access: Access) -> Expr: ...

    @abstractmethod
    def _pointwise(self, node: Node, frame: Shape) -> Expr | tuple[Expr, ...]: ...

    def _channel(self, argument: Any, frame: Shape) -> Expr | None:
        """An argument with one element for each index of dimension 1."""
        if argument is None:
            return None
        value = shapes.ref(argument)
        spec = self.graph.spec(value)
        if value in self.inside or frame != self.frame or len(spec.shape) != 1 or len(frame) < 2:
            raise NotFusable("channels that are computed in the same kernel, or seen through a view")
        return self._read(Access(value, spec.dtype, 1, Align.CHANNEL))

    # Operators with several results

    def _results(self, value: str, frame: Shape) -> tuple[Expr, ...]:
        """All results of an operator; `frame` is that of the one that is asked for."""
        node = self.graph.node[value]
        key = (value, frame, self.flipped)
        if key not in self.tuples:
            lowered = self._reduction if node.op in operators.ROWS else self._pointwise
            found = lowered(node, frame)
            self.tuples[key] = found if isinstance(found, tuple) else (found,)
        return self.tuples[key]

    def _item(self, node: Node, frame: Shape) -> Expr:
        """One result of an operator that has several."""
        source = self.graph.node.get(shapes.ref(node.args[0]))
        if source is None or source.id not in self.inside or source.op not in operators.TUPLES:
            raise NotFusable("one of several results of another kernel")
        index = int(node.args[1])
        if source.op in pools.TUPLES and index == 0:
            return self.value(source.id, frame)
        if source.op in operators.ROWS:
            self._require_frame(node, frame, whole=keeps_shape(source) and index == 0)
        found = self._results(source.id, frame)
        if index >= len(found):
            raise NotFusable(f"result {index} of {source.op}")
        return converted(found[index], node.spec.dtype, narrow=False)

    # Reductions

    def _require_frame(self, node: Node, frame: Shape, *, whole: bool) -> None:
        """A row's result may be looked at as it is, or broadcast along the row where it lies right."""
        assert self.rows is not None
        lies_right = node.spec.shape == self.rows.kept or self.rows.leading
        if frame == self.frame and (whole or lies_right or not self.rows.axes):
            return
        if whole or frame not in (node.spec.shape, self.rows.kept if lies_right else None):
            raise NotFusable(f"{node.id} is broadcast across rows")

    def _reduction(self, node: Node, frame: Shape) -> Expr | tuple[Expr, ...]:
        if node.op not in operators.TUPLES:
            self._require_frame(node, frame, whole=keeps_shape(node))
        if keeps_shape(node) and node.spec.dtype not in FLOATS:
            raise NotFusable(f"{node.op} of {node.spec.dtype}")
        operator = operators.ROWS[node.op]
        to = {
            Operands.RESULT: register_of(node.spec.dtype),
            Operands.BOOL: Register.BOOL,
            Operands.OWN: None,
        }[operator.operands]
        arguments = [self._row_argument(node, position, a, to) for position, a in enumerate(node.args)]
        named = {
            name: self._row_argument(node, -1, a, to)
            for name, a in node.kwargs.items()
            if name not in ("dtype", "keepdim")
        }
        if node.op == "aten.rms_norm.default" and shapes.argument(node, 3, "eps") is None:
            named["eps"] = EPSILON[self.graph.spec(shapes.ref(node.args[0])).dtype]
            arguments = arguments[:3]
        found = operator.formula(*arguments, **named)
        return found if isinstance(found, tuple) else converted(found, node.spec.dtype, narrow=False)

    def _row_argument(self, node: Node, position: int, argument: Any, to: Register | None) -> Any:
        if isinstance(argument, dict) and set(argument) == {"dtype"}:
            return None  # that of the result
        if not (isinstance(argument, dict) and set(argument) == {"ref"}):
            return literal(argument)
        if position in operators.CHANNELS.get(node.op, ()):
            found = self._channel(argument, self.frame)
        else:
            found = self.value(argument["ref"], self._frame_of_argument(node, position))
        return found.to(to) if found and to else found

    def _frame_of_argument(self, node: Node, position: int) -> Shape:
        """Weights and statistics of batch and instance norm have one element for each row."""
        assert self.rows is not None
        if position < 1 or node.op not in (*BATCH_NORMS, INSTANCE_NORM):
            return self.frame
        if node.op == INSTANCE_NORM and position > 2:
            raise NotFusable("running statistics of an instance norm")
        return self.frame if self.rows.dropped is None else self.rows.dropped

    # Scans

    def _scan(self, node: Node, frame: Shape) -> Expr:
        """A running sum or product, or the reversal before or after it."""
        if self.scan is None or frame != self.frame:
            raise NotFusable("a reversal without a scan" if self.scan is None else "a scan that is broadcast")
        source = shapes.ref(node.args[0])
        if node.op == scans.FLIP:
            self.flipped = not self.flipped
            try:
                return self.value(source, frame)
            finally:
                self.flipped = not self.flipped
        if self.flipped != self.scan.reverse:
            raise NotFusable("scans in both directions")
        given = self.value(source, frame).to(register_of(node.spec.dtype))
        return converted(given.apply(scans.SCANS[node.op]), node.spec.dtype, narrow=False)
