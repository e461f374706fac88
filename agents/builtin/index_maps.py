"""Operators that move elements: which element of an operand each one reads, as integer expressions.

A rule gets the node, where its result is looked at, and how to look at operands; `lower_index` uses it.
"""

from collections.abc import Callable
from dataclasses import replace

from stitch_tui.agents.builtin import resampling, shapes
from stitch_tui.agents.builtin.ir import NotFusable, Register
from stitch_tui.agents.builtin.places import (
    MOVES,
    ONCE,
    Index,
    Look,
    Reader,
    Rule,
    dim_of,
    expr_of,
    minus,
    moves,
    operand,
    plus,
    quotient,
    rank_of,
    remainder,
    times,
)
from stitch_tui.agents.builtin.scalar import Expr
from stitch_tui.tools.graph import Node

__all__ = ["MOVES", "ONCE", "SPLITS", "part", "resampling"]

# Views


@moves("t.default", "transpose.int", "permute.default")
def permute(reader: Reader, node: Node, look: Look) -> Expr:
    at: list[Index] = [0] * len(look.at)
    for mine, theirs in enumerate(shapes.order_of(node)):
        at[theirs] = look.at[mine]
    return reader.read(operand(node), replace(look, at=tuple(at)))


@moves("slice.Tensor")
def slice_of(reader: Reader, node: Node, look: Look) -> Expr:
    dim = dim_of(node, 1, len(look.at))
    start, step = shapes.argument(node, 2, "start") or 0, shapes.argument(node, 4, "step", 1)
    first = plus(reader.size(operand(node), dim), start) if start < 0 else start
    return reader.read(operand(node), look.moved(dim, plus(times(look.at[dim], step), first)))


@moves("select.int")
def select(reader: Reader, node: Node, look: Look) -> Expr:
    dim = dim_of(node, 1, len(look.at) + 1)
    number = shapes.argument(node, 2, "index")
    index = plus(reader.size(operand(node), dim), number) if number < 0 else number
    return reader.read(operand(node), replace(look, at=(*look.at[:dim], index, *look.at[dim:])))


@moves("unsqueeze.default")
def unsqueeze(reader: Reader, node: Node, look: Look) -> Expr:
    dim = dim_of(node, 1, len(look.at))
    return reader.read(operand(node), replace(look, at=(*look.at[:dim], *look.at[dim + 1 :])))


@moves("squeeze.dim")
def squeeze(reader: Reader, node: Node, look: Look) -> Expr:
    if rank_of(reader, operand(node)) == len(look.at):
        return reader.read(operand(node), look)
    dim = dim_of(node, 1, len(look.at) + 1)
    return reader.read(operand(node), replace(look, at=(*look.at[:dim], 0, *look.at[dim:])))


@moves("expand.default", once=False)
def expand(reader: Reader, node: Node, look: Look) -> Expr:
    return reader.broadcast(operand(node), node, look)


def part(reader: Reader, node: Node, look: Look) -> Expr:
    """One result of a split: ``getitem``."""
    whole, number = reader.graph.node[operand(node)], int(node.args[1])
    rank, source = rank_of(reader, operand(whole)), operand(whole)
    if whole.op == "aten.unbind.int":
        dim = dim_of(whole, 1, rank)
        return reader.read(source, replace(look, at=(*look.at[:dim], number, *look.at[dim:])))
    dim = dim_of(whole, 2, rank)
    sizes = shapes.argument(whole, 1, "split_sizes" if "with_sizes" in whole.op else "split_size")
    first = sum(sizes[:number]) if isinstance(sizes, (list, tuple)) else sizes * number
    return reader.read(source, look.moved(dim, plus(look.at[dim], first)))


SPLITS = frozenset({"aten.split.Tensor", "aten.split_with_sizes.default", "aten.unbind.int"})


# Copies


@moves("cat.default")
def cat(reader: Reader, node: Node, look: Look) -> Expr:
    """A choice among operands by where the place lies; only the chosen one is read."""
    dim = dim_of(node, 1, len(look.at))
    values = [shapes.ref(v) for v in node.args[0]]
    if any(rank_of(reader, v) != len(look.at) for v in values):
        raise NotFusable("a concatenation of a value without elements")
    ends: list[Index] = [0]
    for value in values:
        ends.append(plus(ends[-1], reader.size(value, dim)))
    place = expr_of(reader, look.at[dim])
    result: Expr | None = None
    for value, first, end in zip(values, ends, ends[1:], strict=False):
        before = place.compare("lt", expr_of(reader, end))
        here = before if first == 0 else before.logic("and", place.compare("ge", expr_of(reader, first)))
        found = reader.read(value, look.moved(dim, minus(place, first)).where(here))
        result = found if result is None else here.select(found, result)
    assert result is not None
    return result


@moves("stack.default")
def stack(reader: Reader, node: Node, look: Look) -> Expr:
    dim = dim_of(node, 1, len(look.at))
    inner = replace(look, at=(*look.at[:dim], *look.at[dim + 1 :]))
    result: Expr | None = None
    for number, value in enumerate(node.args[0]):
        here = expr_of(reader, look.at[dim]).compare("eq", number)
        found = reader.read(shapes.ref(value), inner.where(here))
        result = found if result is None else here.select(found, result)
    assert result is not None
    return result


@moves("flip.default")
def flip(reader: Reader, node: Node, look: Look) -> Expr:
    for given in shapes.argument(node, 1, "dims"):
        dim = given % len(look.at)
        look = look.moved(dim, minus(minus(reader.size(operand(node), dim), 1), look.at[dim]))
    return reader.read(operand(node), look)


@moves("roll.default")
def roll(reader: Reader, node: Node, look: Look) -> Expr:
    shifts, dims = shapes.argument(node, 1, "shifts"), shapes.argument(node, 2, "dims") or []
    if len(shifts) != len(dims):
        raise NotFusable("a roll of the flattened tensor")
    for shift, given in zip(shifts, dims, strict=True):
        dim = given % len(look.at)
        size = reader.size(operand(node), dim)
        look = look.moved(dim, _wrapped(reader, remainder(minus(look.at[dim], shift), size), size))
    return reader.read(operand(node), look)


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
        size = reader.size(operand(node), dim)
        place = expr_of(reader, minus(look.at[dim], before))
        if mode == "constant":
            fits = place.compare("ge", 0).logic("and", place.compare("lt", expr_of(reader, size)))
            inside = fits if inside is None else inside.logic("and", fits)
        look = look.moved(dim, _PADDED[mode](reader, place, size))
    if inside is None:
        return reader.read(operand(node), look)
    found = reader.read(operand(node), look.where(inside))
    return inside.select(found, value)


def _reflected(reader: Reader, place: Expr, size: Index) -> Index:
    last = expr_of(reader, minus(size, 1))
    folded = place.compare("lt", 0).select(expr_of(reader, minus(0, place)), place)
    return folded.compare("gt", last).select(expr_of(reader, minus(times(last, 2), folded)), folded)


def _clamped(reader: Reader, place: Expr, size: Index) -> Index:
    return place.maximum(0).minimum(expr_of(reader, minus(size, 1)))


def _wrapped(reader: Reader, place: Index, size: Index) -> Index:
    """Into 0 .. size - 1 from one period beside."""
    raised = expr_of(reader, place)
    raised = raised.compare("lt", 0).select(expr_of(reader, plus(raised, size)), raised)
    return raised.compare("ge", expr_of(reader, size)).select(expr_of(reader, minus(raised, size)), raised)


_PADDED: dict[str, Callable[[Reader, Expr, Index], Index]] = {
    "constant": lambda _, place, __: place,
    "reflect": _reflected,
    "replicate": _clamped,
    "circular": _wrapped,
}


@moves("repeat.default", once=False)
def repeat(reader: Reader, node: Node, look: Look) -> Expr:
    rank = rank_of(reader, operand(node))
    at = look.at[len(look.at) - rank :]
    inner = tuple(remainder(i, reader.size(operand(node), d)) for d, i in enumerate(at))
    return reader.read(operand(node), replace(look, at=inner))


@moves("repeat_interleave.self_int", once=False)
def repeat_interleave(reader: Reader, node: Node, look: Look) -> Expr:
    if shapes.argument(node, 2, "dim") is None:
        raise NotFusable("a repeat of the flattened tensor")
    dim = dim_of(node, 2, len(look.at))
    return reader.read(operand(node), look.moved(dim, quotient(look.at[dim], node.args[1])))


def _triangle(comparison: str) -> Rule:
    def rule(reader: Reader, node: Node, look: Look) -> Expr:
        kept = expr_of(reader, minus(look.at[-1], look.at[-2]))
        inside = kept.compare(comparison, int(shapes.argument(node, 1, "diagonal", 0)))
        return inside.select(reader.read(operand(node), look.where(inside)), 0)

    return rule


moves("tril.default")(_triangle("le"))
moves("triu.default")(_triangle("ge"))


@moves("diag.default", once=False)
def diag(reader: Reader, node: Node, look: Look) -> Expr:
    if len(look.at) != 2 or shapes.argument(node, 1, "diagonal", 0):
        raise NotFusable("a diagonal that is taken out, or beside the main one")
    here = expr_of(reader, look.at[0]).compare("eq", expr_of(reader, look.at[1]))
    found = reader.read(operand(node), Look((look.at[0],), look.guard).where(here))
    return here.select(found, 0)


@moves("pixel_shuffle.default")
def pixel_shuffle(reader: Reader, node: Node, look: Look) -> Expr:
    factor = int(node.args[1])
    *outer, channel, row, column = look.at
    part_row, part_column = remainder(row, factor), remainder(column, factor)
    deep = plus(times(channel, factor * factor), plus(times(part_row, factor), part_column))
    at = (*outer, deep, quotient(row, factor), quotient(column, factor))
    return reader.read(operand(node), replace(look, at=at))


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
    return reader.read(operand(node), replace(look, at=at))


# Lookups


@moves("embedding.default", once=False)
def embedding(reader: Reader, node: Node, look: Look) -> Expr:
    row = reader.read(operand(node, 1), replace(look, at=look.at[:-1])).to(Register.I64)
    return reader.read(operand(node), replace(look, at=(row, look.at[-1])))


@moves("gather.default", once=False)
def gather(reader: Reader, node: Node, look: Look) -> Expr:
    index = reader.read(operand(node, 2), look).to(Register.I64)
    return reader.read(operand(node), look.moved(dim_of(node, 1, len(look.at)), index))


@moves("index_select.default", once=False)
def index_select(reader: Reader, node: Node, look: Look) -> Expr:
    dim = dim_of(node, 1, len(look.at))
    index = reader.read(operand(node, 2), Look((look.at[dim],), look.guard)).to(Register.I64)
    return reader.read(operand(node), look.moved(dim, index))


@moves("index.Tensor", once=False)
def advanced_index(reader: Reader, node: Node, look: Look) -> Expr:
    """Neighbouring integer indices, broadcast against each other; negative ones count from the end."""
    source, indices = operand(node), list(node.args[1])
    given = [d for d, index in enumerate(indices) if index is not None]
    values = [shapes.ref(indices[d]) for d in given]
    if given != list(range(given[0], given[0] + len(given))):
        raise NotFusable("indices that are not neighbours")
    if any(str(reader.graph.spec(v).dtype) == "bool" for v in values):
        raise NotFusable("an index by a mask")
    rank = max(rank_of(reader, v) for v in values)
    first = given[0]
    inner = replace(look, at=look.at[first : first + rank])
    places: list[Index] = []
    for d, value in zip(given, values, strict=True):
        index = reader.read(value, inner).to(Register.I64)
        negative = index.compare("lt", 0)
        places.append(negative.select(expr_of(reader, plus(index, reader.size(source, d))), index))
    return reader.read(source, replace(look, at=(*look.at[:first], *places, *look.at[first + rank :])))
