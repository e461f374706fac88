"""Resampling: which elements a resized image reads, and their weights."""

from collections.abc import Sequence
from typing import Any

from stitch_tui.agents.builtin import shapes
from stitch_tui.agents.builtin.ir import NotFusable, Register
from stitch_tui.agents.builtin.places import (
    Look,
    Reader,
    expr_of,
    float_of,
    minus,
    moves,
    operand,
    plus,
)
from stitch_tui.agents.builtin.scalar import Expr
from stitch_tui.tools.graph import Node


@moves(*(f"upsample_nearest{d}d.vec" for d in (1, 2, 3)), once=False)
def upsample_nearest(reader: Reader, node: Node, look: Look) -> Expr:
    for dim, scale in _scales(reader, node, look, align_corners=False):
        moved = (float_of(reader, look.at[dim]) * scale).apply("floor").to(Register.I64)
        last = expr_of(reader, minus(reader.size(operand(node), dim), 1))
        look = look.moved(dim, moved.minimum(last))
    return reader.read(operand(node), look)


@moves("upsample_bilinear2d.vec", once=False)
def upsample_bilinear(reader: Reader, node: Node, look: Look) -> Expr:
    """The weighted mean of four neighbours."""
    align = bool(shapes.argument(node, 2, "align_corners", False))
    axes: list[tuple[int, Expr, Expr, Expr]] = []
    for dim, scale in _scales(reader, node, look, align_corners=align):
        place = float_of(reader, look.at[dim])
        place = place * scale if align else ((place + 0.5) * scale - 0.5).maximum(0.0)
        low = place.to(Register.I64)
        high = expr_of(reader, plus(low, 1)).minimum(
            expr_of(reader, minus(reader.size(operand(node), dim), 1))
        )
        axes.append((dim, low, high, place - low.to(Register.F32)))
    (row, top, bottom, down), (column, left, right, across) = axes

    def line(index: Expr) -> Expr:
        a, b = (
            reader.read(operand(node), look.moved(row, index).moved(column, c)).to(Register.F32)
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
        extent = float_of(reader, reader.size(operand(node), dim))
        if not sizes:
            raise NotFusable("aligned corners without a size")
        if not align_corners:
            found.append((dim, extent / float(sizes[number])))
        else:
            found.append((dim, (extent - 1.0) / float(max(sizes[number] - 1, 1))))
    return found
