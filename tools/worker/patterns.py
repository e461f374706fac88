"""Where a wrong result is wrong, in words that point at the mistake: a tail, rows, tiles, a stale buffer."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .abi import POISON
from .arena import bytes_of

TILES = (8, 16, 32, 64, 128)
"""Block extents whose edges are looked for."""
_STRIDES = (2, 3, 4, 8, 16, 32, 64, 128)
_ALIKE = 1e-3
"""Relative difference below which two tensors look the same."""


def describe(wrong: Tensor, got: Tensor, truth: Tensor, lookalikes: Mapping[str, Tensor]) -> dict[str, Any]:
    """First wrong element, count and pattern of the elements marked in `wrong` (bool, any shape).

    Returns:
        index (list), expected, got (floats; a string where JSON has no such number), wrong, elements
        (counts), pattern (a phrase), and looks_like (a phrase, absent when it resembles nothing known).
    """
    flat = wrong.flatten().nonzero().flatten()
    first = int(flat[0])
    detail: dict[str, Any] = {
        "index": _unravel(first, tuple(wrong.shape)),
        "expected": _number(truth.flatten()[first]),
        "got": _number(got.flatten()[first]),
        "wrong": len(flat),
        "elements": wrong.numel(),
        "pattern": pattern(wrong),
    }
    if likeness := resemblance(wrong, got, truth, lookalikes):
        detail["looks_like"] = likeness
        detail["pattern"] += f", {likeness}"
    return detail


def pattern(wrong: Tensor) -> str:
    """A phrase for the shape of the set of wrong elements; ``scattered`` when it has none."""
    count = int(wrong.sum())
    if count == wrong.numel():
        return "all elements"
    flat = wrong.flatten()
    where = flat.nonzero().flatten()
    if count == 1:
        return "a single element, the last" if int(where[0]) == flat.numel() - 1 else "a single element"
    if int(where[0]) == flat.numel() - count:
        return f"the last {count} elements in memory"
    return _slices(wrong) or _regular(where, flat.numel()) or _tile_edges(wrong) or "scattered"


def _slices(wrong: Tensor) -> str:
    """Whole hyperplanes along one axis: rows, columns, channels."""
    for axis in range(wrong.dim()):
        others = [other for other in range(wrong.dim()) if other != axis]
        if not others or wrong.shape[axis] == 1:
            continue
        every, some = wrong, wrong
        for other in sorted(others, reverse=True):
            every, some = every.all(dim=other), some.any(dim=other)
        if bool((every == some).all()):
            return f"whole {_axis_name(axis, wrong.dim())} {_listed(every.nonzero().flatten())}"
    return ""


def _regular(where: Tensor, total: int) -> str:
    """Every n-th element of memory."""
    for stride in _STRIDES:
        residue = int(where[0]) % stride
        if bool((where % stride == residue).all()) and len(where) == len(range(residue, total, stride)):
            return f"every element whose position is {residue} modulo {stride}"
    return ""


def _tile_edges(wrong: Tensor) -> str:
    """Only at the first or last row or column of tiles, or past the last whole tile."""
    index = wrong.nonzero()
    for axis in range(wrong.dim()):
        along, extent = index[:, axis], wrong.shape[axis]
        for tile in reversed(TILES):
            if extent <= tile:
                continue
            if extent % tile and bool((along >= extent - extent % tile).all()):
                return f"past the last whole tile of {tile} along axis {axis}"
            edge = along % tile
            if bool((edge == tile - 1).all()) or bool((edge == 0).all()):
                return f"at the edges of tiles of {tile} along axis {axis}"
    return ""


def resemblance(wrong: Tensor, got: Tensor, truth: Tensor, lookalikes: Mapping[str, Tensor]) -> str:
    """What the wrong elements look like: never written, stale, another tensor, transposed, scaled."""
    elements = bytes_of(got).reshape(-1, got.dtype.itemsize)
    untouched = (elements == POISON).all(dim=1).reshape(got.shape)
    if bool(untouched[wrong].all()):
        return "never written"
    values, expected = got[wrong].double(), truth[wrong].double()
    if bool(torch.isnan(values).all()):
        return "NaN"
    if bool((values == 0).all()):
        return "zero"
    if len(values) > 2 and float(values.max()) == float(values.min()) and expected.max() != expected.min():
        return f"the same number everywhere, {_number(values[0])}"
    for name, other in lookalikes.items():
        if other.numel() == got.numel() and _alike(got[wrong], other.reshape(got.shape)[wrong]):
            return f"equal to {name}"
    if got.dim() >= 2 and bool(wrong.sum() * 2 > wrong.numel()):
        turned = truth.transpose(-1, -2).contiguous().reshape(truth.shape)
        if _alike(got, turned):
            return "the transposed result"
    return _affine(values, expected)


def _number(element: Tensor) -> float | str:
    value = float(element)
    return float(f"{value:.7g}") if math.isfinite(value) else str(value)


def _affine(values: Tensor, expected: Tensor) -> str:
    if len(values) < 3:
        return ""
    ratio = float((values / expected).nanmedian())
    if math.isfinite(ratio) and ratio not in (0.0, 1.0) and _alike(values, expected * ratio):
        return f"the expected values times {ratio:.4g}"
    shift = float((values - expected).nanmedian())
    if math.isfinite(shift) and shift and _alike(values, expected + shift):
        return f"the expected values plus {shift:.4g}"
    return ""


def _alike(left: Tensor, right: Tensor) -> bool:
    left, right = left.double().flatten(), right.double().flatten()
    spread = float(right.std()) if len(right) > 1 else float(right.abs().max())
    largest = float((left - right).abs().max()) if len(left) else math.inf
    return largest <= _ALIKE * spread if spread else largest == 0.0


def _axis_name(axis: int, rank: int) -> str:
    if rank == 2:
        return ("rows", "columns")[axis]
    return f"slices along axis {axis}:"


def _listed(indices: Tensor) -> str:
    shown = ", ".join(str(int(i)) for i in indices[:4])
    return shown + (f", ... ({len(indices)} in all)" if len(indices) > 4 else "")


def _unravel(position: int, shape: tuple[int, ...]) -> list[int]:
    index = []
    for extent in reversed(shape):
        index.append(position % extent)
        position //= extent
    return index[::-1]
