"""Operators that move elements: which element of an operand each one reads, as integer expressions.

A rule gets the node, where its result is looked at, and how to look at operands; `lower_index` uses it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from stitch_tui.agents.builtin import shapes
from stitch_tui.agents.builtin.ir import NotFusable, Register
from stitch_tui.agents.builtin.scalar import Expr
from stitch_tui.tools.graph import Graph, Node

Index = Expr | int


@dataclass(frozen=True)
class Look:
    """Where a value is looked at: one integer for each dimension, and whether that place exists."""

    at: tuple[Index, ...]
    guard: Expr | None = None
    """None: always."""

    def moved(self, dim: int, index: Index) -> "Look":
        """The same place but for one dimension."""
        return replace(self, at=(*self.at[:dim], index, *self.at[dim + 1 :]))

    def where(self, condition: Expr) -> "Look":
        """Looked at only where `condition` holds as well."""
        guard = condition if self.guard is None else self.guard.logic("and", condition)
        return replace(self, guard=guard)


class Reader(Protocol):
    """What rules ask for."""

    graph: Graph

    def read(self, value: str, look: Look) -> Expr: ...

    def broadcast(self, value: str, node: Node, look: Look) -> Expr: ...

    def size(self, value: str, dim: int) -> Index: ...

    def index(self, number: int) -> Expr: ...


Rule = Callable[[Reader, Node, Look], Expr]
MOVES: dict[str, Rule] = {}
"""Rules by operator."""
ONCE: set[str] = set()
"""Operators that read no element twice: what feeds them may be computed in the same kernel."""


def moves(*names: str, once: bool = True) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for name in names:
            MOVES[f"aten.{name}"] = rule
            if once:
                ONCE.add(f"aten.{name}")
        return rule

    return register


# Integer arithmetic; what is known now is computed now.


def _binary(
    op: str, known: Callable[[int, int], int], neutral: int | None
) -> Callable[[Index, Index], Index]:
    def apply(a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return known(a, b)
        if isinstance(b, int) and b == neutral:
            return a
        program = a.program if isinstance(a, Expr) else b.program  # type: ignore[union-attr]
        a, b = (i if isinstance(i, Expr) else program.constant(i, Register.I64) for i in (a, b))
        return program.add(op, Register.I64, a, b)

    return apply


plus = _binary("plus", lambda a, b: a + b, 0)
minus = _binary("minus", lambda a, b: a - b, 0)
times = _binary("times", lambda a, b: a * b, 1)
quotient = _binary("quotient", lambda a, b: a // b, 1)
"""Of numbers that are not negative."""
remainder = _binary("remainder", lambda a, b: a % b, None)
"""Of numbers that are not negative."""


def _source(node: Node, position: int = 0) -> str:
    return shapes.ref(node.args[position])


def _dim(node: Node, position: int, rank: int, default: int = 0) -> int:
    return int(shapes.argument(node, position, "dim", default)) % rank


def _rank(reader: Reader, value: str) -> int:
    return len(reader.graph.spec(value).shape)


# Views


@moves("t.default", "transpose.int", "permute.default")
def permute(reader: Reader, node: Node, look: Look) -> Expr:
    at: list[Index] = [0] * len(look.at)
    for mine, theirs in enumerate(order_of(node)):
        at[theirs] = look.at[mine]
    return reader.read(_source(node), replace(look, at=tuple(at)))


def order_of(node: Node) -> list[int]:
    """For each dimension of the result, the one of the operand."""
    rank = len(node.spec.shape)
    if node.op == "aten.permute.default":
        return [d % rank for d in shapes.argument(node, 1, "dims")]
    order = list(range(rank))
    if node.op == "aten.t.default":
        return order[::-1]
    a, b = (int(shapes.argument(node, 1 + i, f"dim{i}")) % rank for i in (0, 1))
    order[a], order[b] = order[b], order[a]
    return order


@moves("slice.Tensor")
def slice_of(reader: Reader, node: Node, look: Look) -> Expr:
    dim = _dim(node, 1, len(look.at))
    start, step = shapes.argument(node, 2, "start") or 0, shapes.argument(node, 4, "step", 1)
    first = plus(reader.size(_source(node), dim), start) if start < 0 else start
    return reader.read(_source(node), look.moved(dim, plus(times(look.at[dim], step), first)))


@moves("select.int")
def select(reader: Reader, node: Node, look: Look) -> Expr:
    dim = _dim(node, 1, len(look.at) + 1)
    number = shapes.argument(node, 2, "index")
    index = plus(reader.size(_source(node), dim), number) if number < 0 else number
    return reader.read(_source(node), replace(look, at=(*look.at[:dim], index, *look.at[dim:])))


@moves("unsqueeze.default")
def unsqueeze(reader: Reader, node: Node, look: Look) -> Expr:
    dim = _dim(node, 1, len(look.at))
    return reader.read(_source(node), replace(look, at=(*look.at[:dim], *look.at[dim + 1 :])))


@moves("squeeze.dim")
def squeeze(reader: Reader, node: Node, look: Look) -> Expr:
    if _rank(reader, _source(node)) == len(look.at):
        return reader.read(_source(node), look)
    dim = _dim(node, 1, len(look.at) + 1)
    return reader.read(_source(node), replace(look, at=(*look.at[:dim], 0, *look.at[dim:])))


@moves("expand.default", once=False)
def expand(reader: Reader, node: Node, look: Look) -> Expr:
    return reader.broadcast(_source(node), node, look)


def part(reader: Reader, node: Node, look: Look) -> Expr:
    """One result of a split: ``getitem``."""
    whole, number = reader.graph.node[_source(node)], int(node.args[1])
    rank, source = _rank(reader, _source(whole)), _source(whole)
    if whole.op == "aten.unbind.int":
        dim = _dim(whole, 1, rank)
        return reader.read(source, replace(look, at=(*look.at[:dim], number, *look.at[dim:])))
    dim = _dim(whole, 2, rank)
    sizes = shapes.argument(whole, 1, "split_sizes" if "with_sizes" in whole.op else "split_size")
    first = sum(sizes[:number]) if isinstance(sizes, (list, tuple)) else sizes * number
    return reader.read(source, look.moved(dim, plus(look.at[dim], first)))


SPLITS = frozenset({"aten.split.Tensor", "aten.split_with_sizes.default", "aten.unbind.int"})


# Copies


@moves("cat.default")
def cat(reader: Reader, node: Node, look: Look) -> Expr:
    """A choice among operands by where the place lies; only the chosen one is read."""
    dim = _dim(node, 1, len(look.at))
    values = [shapes.ref(v) for v in node.args[0]]
    if any(_rank(reader, v) != len(look.at) for v in values):
        raise NotFusable("a concatenation of a value without elements")
    ends: list[Index] = [0]
    for value in values:
        ends.append(plus(ends[-1], reader.size(value, dim)))
    place = _expr(reader, look.at[dim])
    result: Expr | None = None
    for value, first, end in zip(values, ends, ends[1:], strict=False):
        before = place.compare("lt", _expr(reader, end))
        here = before if first == 0 else before.logic("and", place.compare("ge", _expr(reader, first)))
        found = reader.read(value, look.moved(dim, minus(place, first)).where(here))
        result = found if result is None else here.select(found, result)
    assert result is not None
    return result


@moves("stack.default")
def stack(reader: Reader, node: Node, look: Look) -> Expr:
    dim = _dim(node, 1, len(look.at))
    inner = replace(look, at=(*look.at[:dim], *look.at[dim + 1 :]))
    result: Expr | None = None
    for number, value in enumerate(node.args[0]):
        here = _expr(reader, look.at[dim]).compare("eq", number)
        found = reader.read(shapes.ref(value), inner.where(here))
        result = found if result is None else here.select(found, result)
    assert result is not None
    return result


@moves("flip.default")
def flip(reader: Reader, node: Node, look: Look) -> Expr:
    for given in shapes.argument(node, 1, "dims"):
        dim = given % len(look.at)
        look = look.moved(dim, minus(minus(reader.size(_source(node), dim), 1), look.at[dim]))
    return reader.read(_source(node), look)


@moves("roll.default")
def roll(reader: Reader, node: Node, look: Look) -> Expr:
    shifts, dims = shapes.argument(node, 1, "shifts"), shapes.argument(node, 2, "dims") or []
    if len(shifts) != len(dims):
        raise NotFusable("a roll of the flattened tensor")
    for shift, given in zip(shifts, dims, strict=True):
        dim = given % len(look.at)
        size = reader.size(_source(node), dim)
        look = look.moved(dim, _wrapped(reader, remainder(minus(look.at[dim], shift), size), size))
    return reader.read(_source(node), look)


@moves("pad.default", "constant_pad_nd.default")
def pad(reader: Reader, node: Node, look: Look) -> Expr:
    constant = node.op == "aten.constant_pad_nd.default"
    mode = "constant" if constant else shapes.argument(node, 2, "mode", "constant")
    value = shapes.argument(node, 2 if constant else 3, "value") or 0
    inside: Expr | None = None
    given = shapes.argument(node, 1, "pad")
    for number in range(len(given) // 2):
        dim = len(look.at) - 1 - number
        before, behind = given[2 * number : 2 * number + 2]
        if before == behind == 0:
            continue
        size = reader.size(_source(node), dim)
        place = _expr(reader, minus(look.at[dim], before))
        if mode == "constant":
            fits = place.compare("ge", 0).logic("and", place.compare("lt", _expr(reader, size)))
            inside = fits if inside is None else inside.logic("and", fits)
        look = look.moved(dim, _PADDED[mode](reader, place, size))
    if inside is None:
        return reader.read(_source(node), look)
    found = reader.read(_source(node), look.where(inside))
    return inside.select(found, value)


def _reflected(reader: Reader, place: Expr, size: Index) -> Index:
    last = _expr(reader, minus(size, 1))
    folded = place.compare("lt", 0).select(_expr(reader, minus(0, place)), place)
    return folded.compare("gt", last).select(_expr(reader, minus(times(last, 2), folded)), folded)


def _clamped(reader: Reader, place: Expr, size: Index) -> Index:
    return place.maximum(0).minimum(_expr(reader, minus(size, 1)))


def _wrapped(reader: Reader, place: Index, size: Index) -> Index:
    """Into 0 .. size - 1 from one period beside."""
    raised = _expr(reader, place)
    raised = raised.compare("lt", 0).select(_expr(reader, plus(raised, size)), raised)
    return raised.compare("ge", _expr(reader, size)).select(_expr(reader, minus(raised, size)), raised)


_PADDED: dict[str, Callable[[Reader, Expr, Index], Index]] = {
    "constant": lambda _, place, __: place,
    "reflect": _reflected,
    "replicate": _clamped,
    "circular": _wrapped,
}


@moves("repeat.default", once=False)
def repeat(reader: Reader, node: Node, look: Look) -> Expr:
    rank = _rank(reader, _source(node))
    at = look.at[len(look.at) - rank :]
    inner = tuple(remainder(i, reader.size(_source(node), d)) for d, i in enumerate(at))
    return reader.read(_source(node), replace(look, at=inner))


@moves("repeat_interleave.self_int", once=False)
def repeat_interleave(reader: Reader, node: Node, look: Look) -> Expr:
    if shapes.argument(node, 2, "dim") is None:
        raise NotFusable("a repeat of the flattened tensor")
    dim = _dim(node, 2, len(look.at))
    return reader.read(_source(node), look.moved(dim, quotient(look.at[dim], node.args[1])))


def _triangle(comparison: str) -> Rule:
    def rule(reader: Reader, node: Node, look: Look) -> Expr:
        kept = _expr(reader, minus(look.at[-1], look.at[-2]))
        inside = kept.compare(comparison, int(shapes.argument(node, 1, "diagonal", 0)))
        return inside.select(reader.read(_source(node), look.where(inside)), 0)

    return rule


moves("tril.default")(_triangle("le"))
moves("triu.default")(_triangle("ge"))


@moves("diag.default", once=False)
def diag(reader: Reader, node: Node, look: Look) -> Expr:
    if len(look.at) != 2 or shapes.argument(node, 1, "diagonal", 0):
        raise NotFusable("a diagonal that is taken out, or beside the main one")
    here = _expr(reader, look.at[0]).compare("eq", _expr(reader, look.at[1]))
    found = reader.read(_source(node), Look((look.at[0],), look.guard).where(here))
    return here.select(found, 0)


@moves("pixel_shuffle.default")
def pixel_shuffle(reader: Reader, node: Node, look: Look) -> Expr:
    factor = int(node.args[1])
    *outer, channel, row, column = look.at
    part_row, part_column = remainder(row, factor), remainder(column, factor)
    deep = plus(times(channel, factor * factor), plus(times(part_row, factor), part_column))
    at = (*outer, deep, quotient(row, factor), quotient(column, factor))
    return reader.read(_source(node), replace(look, at=at))


@moves("pixel_unshuffle.default")
def pixel_unshuffle(reader: Reader, node: Node, look: Look) -> Expr:
    factor = int(node.args[1])
    *outer, channel, row, column = look.at
    spot = remainder(channel, factor * factor)
    at = (
        *outer,
        quotient(channel, factor * factor),
        plus(times(row, factor), quotient(spot, factor)),
        plus(times(column, factor), remainder(spot, factor)),
    )
    return reader.read(_source(node), replace(look, at=at))


# Lookups


@moves("embedding.default", once=False)
def embedding(reader: Reader, node: Node, look: Look) -> Expr:
    row = reader.read(_source(node, 1), replace(look, at=look.at[:-1])).to(Register.I64)
    return reader.read(_source(node), replace(look, at=(row, look.at[-1])))


@moves("gather.default", once=False)
def gather(reader: Reader, node: Node, look: Look) -> Expr:
    index = reader.read(_source(node, 2), look).to(Register.I64)
    return reader.read(_source(node), look.moved(_dim(node, 1, len(look.at)), index))


@moves("index_select.default", once=False)
def index_select(reader: Reader, node: Node, look: Look) -> Expr:
    dim = _dim(node, 1, len(look.at))
    index = reader.read(_source(node, 2), Look((look.at[dim],), look.guard)).to(Register.I64)
    return reader.read(_source(node), look.moved(dim, index))


@moves("index.Tensor", once=False)
def advanced_index(reader: Reader, node: Node, look: Look) -> Expr:
    """Neighbouring integer indices, broadcast against each other; negative ones count from the end."""
    source, indices = _source(node), list(node.args[1])
    given = [d for d, index in enumerate(indices) if index is not None]
    values = [shapes.ref(indices[d]) for d in given]
    if given != list(range(given[0], given[0] + len(given))):
        raise NotFusable("indices that are not neighbours")
    if any(str(reader.graph.spec(v).dtype) == "bool" for v in values):
        raise NotFusable("an index by a mask")
    rank = max(_rank(reader, v) for v in values)
    first = given[0]
    inner = replace(look, at=look.at[first : first + rank])
    places: list[Index] = []
    for d, value in zip(given, values, strict=True):
        index = reader.read(value, inner).to(Register.I64)
        negative = index.compare("lt", 0)
        places.append(negative.select(_expr(reader, plus(index, reader.size(source, d))), index))
    return reader.read(source, replace(look, at=(*look.at[:first], *places, *look.at[first + rank :])))


# Extents of what is computed inside the kernel

SIZES: dict[str, Callable[[Reader, Node, int], Index]] = {}


def _permuted_size(reader: Reader, node: Node, dim: int) -> Index:
    return reader.size(_source(node), order_of(node)[dim])


def _joined_size(reader: Reader, node: Node, dim: int) -> Index:
    values = [shapes.ref(v) for v in node.args[0]]
    if dim != _dim(node, 1, len(node.spec.shape)):
        return reader.size(values[0], dim)
    total: Index = 0
    for value in values:
        total = plus(total, reader.size(value, dim))
    return total


def _padded_size(reader: Reader, node: Node, dim: int) -> Index:
    given = shapes.argument(node, 1, "pad")
    number = len(node.spec.shape) - 1 - dim
    more = sum(given[2 * number : 2 * number + 2])
    return plus(reader.size(_source(node), dim), more)


def _sliced_size(reader: Reader, node: Node, dim: int) -> Index:
    if dim == _dim(node, 1, len(node.spec.shape)):
        raise NotFusable("an extent of a slice inside the kernel")
    return reader.size(_source(node), dim)


SIZES |= {"aten.slice.Tensor": _sliced_size}
SIZES |= dict.fromkeys(shapes.TRANSPOSES, _permuted_size)
SIZES |= {"aten.cat.default": _joined_size}
SIZES |= dict.fromkeys(("aten.pad.default", "aten.constant_pad_nd.default"), _padded_size)
SIZES |= dict.fromkeys(
    ("aten.flip.default", "aten.roll.default", "aten.tril.default", "aten.triu.default"),
    lambda reader, node, dim: reader.size(_source(node), dim),
)


# Resampling


@moves(*(f"upsample_nearest{d}d.vec" for d in (1, 2, 3)), once=False)
def upsample_nearest(reader: Reader, node: Node, look: Look) -> Expr:
    for dim, scale in _scales(reader, node, look, align_corners=False):
        moved = (_float(reader, look.at[dim]) * scale).apply("floor").to(Register.I64)
        last = _expr(reader, minus(reader.size(_source(node), dim), 1))
        look = look.moved(dim, moved.minimum(last))
    return reader.read(_source(node), look)


@moves("upsample_bilinear2d.vec", once=False)
def upsample_bilinear(reader: Reader, node: Node, look: Look) -> Expr:
    """The weighted mean of four neighbours."""
    align = bool(shapes.argument(node, 2, "align_corners", False))
    axes: list[tuple[int, Expr, Expr, Expr]] = []
    for dim, scale in _scales(reader, node, look, align_corners=align):
        place = _float(reader, look.at[dim])
        place = place * scale if align else ((place + 0.5) * scale - 0.5).maximum(0.0)
        low = place.to(Register.I64)
        high = _expr(reader, plus(low, 1)).minimum(_expr(reader, minus(reader.size(_source(node), dim), 1)))
        axes.append((dim, low, high, place - low.to(Register.F32)))
    (row, top, bottom, down), (column, left, right, across) = axes

    def line(index: Expr) -> Expr:
        a, b = (
            reader.read(_source(node), look.moved(row, index).moved(column, c)).to(Register.F32)
            for c in (left, right)
        )
        return (1 - across) * a + across * b

    return (1 - down) * line(top) + down * line(bottom)


def _scales(reader: Reader, node: Node, look: Look, *, align_corners: bool) -> Sequence[tuple[int, Any]]:
    """For each resampled dimension, how far the operand's place moves for one step of the result."""
    sizes = shapes.argument(node, 1, "output_size")
    factors = shapes.argument(node, 2 if "nearest" in node.op else 3, "scale_factors")
    count = len(sizes or factors or ())
    found: list[tuple[int, Any]] = []
    for number in range(count):
        dim = len(look.at) - count + number
        if factors and not align_corners:
            found.append((dim, 1.0 / factors[number]))
            continue
        extent = _float(reader, reader.size(_source(node), dim))
        if not sizes:
            raise NotFusable("aligned corners without a size")
        if not align_corners:
            found.append((dim, extent / float(sizes[number])))
        else:
            found.append((dim, (extent - 1.0) / float(max(sizes[number] - 1, 1))))
    return found


def _expr(reader: Reader, index: Index) -> Expr:
    return index if isinstance(index, Expr) else reader.index(index)


def _float(reader: Reader, index: Index) -> Expr:
    return _expr(reader, index).to(Register.F32)
