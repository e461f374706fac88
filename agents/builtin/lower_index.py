"""Regions that move elements -> one `Subtask`: every value is read at coordinates computed from the point."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from stitch_tui.agents.builtin import extents, index_maps, operators, shapes
from stitch_tui.agents.builtin.index_maps import MOVES, SPLITS
from stitch_tui.agents.builtin.ir import (
    MAX_RANK,
    Access,
    Align,
    Kind,
    NotFusable,
    Register,
    Store,
    Subtask,
    register_of,
)
from stitch_tui.agents.builtin.places import Index, Look
from stitch_tui.agents.builtin.plain_values import converted, literal, promoted, require_plain_semantics
from stitch_tui.agents.builtin.region_lowering import RegionLowering
from stitch_tui.agents.builtin.scalar import Expr
from stitch_tui.agents.builtin.title import title_of
from stitch_tui.tools.graph import Graph, Node, Region


def moves_elements(node: Node) -> bool:
    """Whether the node reads elements from elsewhere than a pointwise operator would."""
    return (node.op in MOVES and node.op not in operators.RESHAPES | operators.IDENTITY) or node.op in SPLITS


def is_copy(graph: Graph, node: Node) -> bool:
    """Whether the node lays a view's elements out anew: a kernel in PyTorch."""
    if node.op not in operators.COPIES:
        return False
    source = graph.node.get(shapes.ref(node.args[0]))
    return source is not None and (
        source.op in MOVES or source.op == "getitem" or source.op in operators.IDENTITY
    )


class IndexLowering(RegionLowering):
    """One region; the space is that of its results, which all have one shape."""

    def __init__(self, graph: Graph, region: Region) -> None:
        super().__init__(graph, region)
        self.known: dict[Any, Expr] = {}

    def subtask(self) -> Subtask:
        """The kernel.

        Raises:
            NotFusable: an operator without a rule, or results of several shapes.
        """
        frames = {self.graph.spec(v).shape for v in self.region.outputs}
        if len(frames) != 1:
            raise NotFusable("results of several shapes")
        frame = frames.pop()
        if max(len(self.graph.spec(v).shape) for v in (*self.region.outputs, *self.region.inputs)) > MAX_RANK:
            raise NotFusable(f"more than {MAX_RANK} dimensions")
        dag = self._dag([self._store(value, len(frame)) for value in self.region.outputs])
        self._require_all_read()
        return Subtask(
            kind=Kind.INDEX,
            region=self.region,
            title=title_of(self.nodes),
            rank=len(frame),
            points=shapes.numel(frame),
            accesses=tuple(self.accesses),
            dag=dag,
        )

    def _store(self, value: str, rank: int) -> Store:
        spec = self.graph.spec(value)
        at = tuple(self.program.add("coord", Register.I64, literal=d) for d in range(rank))
        expr = converted(self.read(value, Look(at)), spec.dtype, narrow=False)
        self.accesses.append(Access(value, spec.dtype, rank, Align.BROADCAST, output=True))
        return Store(expr.index, len(self.accesses) - 1)

    # What the rules ask for

    def read(self, value: str, look: Look) -> Expr:
        """A value at a place."""
        if value not in self.inside:
            return self._load(value, look)
        key = (
            value,
            *(i if isinstance(i, int) else (i.index,) for i in look.at),
            look.guard and look.guard.index,
        )
        if key not in self.known:
            self.known[key] = self._node(self.graph.node[value], look)
        return self.known[key]

    def broadcast(self, value: str, node: Node, look: Look) -> Expr:
        """A value at the place of `node`'s result that it is broadcast to."""
        shape, target = self.graph.spec(value).shape, node.spec.shape
        at = look.at[len(look.at) - len(shape) :]
        if value in self.inside:  # what is read from memory repeats through strides of 0
            wide = target[len(target) - len(shape) :]
            at = tuple(0 if s == 1 and t != 1 else i for i, s, t in zip(at, shape, wide, strict=True))
        return self.read(value, replace(look, at=at))

    def size(self, value: str, dim: int) -> Index:
        """An extent, as the call has it."""
        if value not in self.inside:
            self._require_supported(value)
            return self.program.add("size", Register.I64, literal=self._access(value) * MAX_RANK + dim)
        node = self.graph.node[value]
        if node.op in extents.SIZES:
            return extents.SIZES[node.op](self, node, dim)
        if shapes.is_pointwise(node):
            extent, rank = node.spec.shape[dim], len(node.spec.shape)
            for operand in node.operands:
                shape = self.graph.spec(operand).shape
                theirs = dim - rank + len(shape)
                if theirs >= 0 and shape[theirs] == extent:
                    return self.size(operand, theirs)
        raise NotFusable(f"an extent of {node.op} inside the kernel")

    def index(self, number: int) -> Expr:
        """An integer as an expression."""
        return self.program.constant(number, Register.I64)

    # Values

    def _load(self, value: str, look: Look) -> Expr:
        self._require_supported(value)
        rank = len(self.graph.spec(value).shape)
        at = [i if isinstance(i, Expr) else self.index(i) for i in look.at[len(look.at) - rank :]]
        register = register_of(self.graph.spec(value).dtype)
        if look.guard is None:
            return self.program.add("load_at", register, *at, literal=self._access(value))
        return self.program.add("load_if", register, look.guard, *at, literal=self._access(value))

    def _require_supported(self, value: str) -> None:
        if value in self.graph.node and len(self.graph.node[value].outputs) > 1:
            raise NotFusable(f"{value} is a tuple")

    def _access(self, value: str) -> int:
        spec = self.graph.spec(value)
        access = Access(value, spec.dtype, len(spec.shape), Align.BROADCAST)
        if access not in self.accesses:
            self.accesses.append(access)
        return self.accesses.index(access)

    def _node(self, node: Node, look: Look) -> Expr:
        if node.op == "getitem":
            return self._item(node, look)
        if node.op in MOVES:
            return MOVES[node.op](self, node, look)
        if node.op in operators.IDENTITY:
            return self.read(shapes.ref(node.args[0]), look)
        if node.op in operators.CASTS:
            moved = self.read(shapes.ref(node.args[0]), look)
            return converted(moved, node.spec.dtype, narrow=True)
        if node.op in operators.POINTWISE:
            return self._pointwise(node, look)
        raise NotFusable(f"{node.op} in a kernel that moves elements")

    def _item(self, node: Node, look: Look) -> Expr:
        """A part of a split, or the first result of a norm; its other results are for training."""
        whole = self.graph.node[shapes.ref(node.args[0])]
        if whole.op in SPLITS:
            return index_maps.part(self, node, look)
        if whole.op in operators.POINTWISE and node.args[1] == 0:
            return self.read(whole.id, look)
        raise NotFusable("a result of an operator that returns several tensors")

    def _pointwise(self, node: Node, look: Look) -> Expr:
        require_plain_semantics(self.graph, node)
        operator = operators.POINTWISE[node.op]
        target = promoted(self.graph, node)
        cast: Callable[[Expr], Expr] = (lambda e: e.to(target)) if operator.promote else (lambda e: e)

        channels = operators.CHANNELS.get(node.op, ())

        def argument(given: Any, position: int = -1) -> Any:
            if not (isinstance(given, dict) and set(given) == {"ref"}):
                return literal(given)
            if position in channels:
                return cast(self.read(given["ref"], replace(look, at=(look.at[1],))))
            return cast(self.broadcast(given["ref"], node, look))

        given = [argument(a, position) for position, a in enumerate(node.args)]
        found = operator.formula(*given, **{k: argument(v) for k, v in node.kwargs.items()})
        return converted(found[0] if isinstance(found, tuple) else found, node.spec.dtype, narrow=False)
