"""Is an error that of a lower precision?  Named when the pattern of errors is that of rounded operands."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

SIMILAR = 0.9
"""Cosine between two error patterns above which one explains the other.  Rounding operands moves the exact
result in a way that is a function of the operands alone, so a kernel that rounds them shows it again; the
errors of another summation order have nothing to do with it (cosine near 0)."""

LEAST = 16
"""Elements below which a likeness is no evidence: two single numbers are always alike."""

Evaluate = Callable[[Sequence[Tensor]], Sequence[Tensor]]


def tf32(values: Tensor) -> Tensor:
    """Ten bits of mantissa, to nearest."""
    bits = values.float().contiguous().view(torch.int32)
    rounded = ((bits + (1 << 12)) & ~((1 << 13) - 1)).view(torch.float32)
    return torch.where(torch.isfinite(values), rounded, values)


def tf32_truncated(values: Tensor) -> Tensor:
    """Ten bits of mantissa, the others cut off, as tensor cores read plain float32."""
    return (values.float().contiguous().view(torch.int32) & ~((1 << 13) - 1)).view(torch.float32)


ROUNDINGS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "TF32 or float16": tf32,
    "truncated TF32": tf32_truncated,
    "bfloat16": lambda values: values.to(torch.bfloat16).float(),
}


def named(
    index: int, got: Tensor, truth: Tensor, tensors: Sequence[Tensor], evaluate: Evaluate
) -> tuple[str, float]:
    """The precision whose rounding explains the error of output `index`, and the cosine; empty: none does.

    Args:
        got: the candidate's result, float32.
        truth: the float64 result.
        tensors: the operands, as the candidate got them.
        evaluate: operands -> float64 results.
    """
    if got.dtype is not torch.float32 or not all(t.dtype is torch.float32 for t in tensors[:1]):
        return "", 0.0
    error = (got.double() - truth).flatten()
    if error.numel() < LEAST:
        return "", 0.0
    best, likeness = "", 0.0
    for name, rounding in ROUNDINGS.items():
        rounded = [rounding(t) if t.dtype is torch.float32 else t for t in tensors]
        patterns = {f"operands rounded to {name}": evaluate(rounded)[index]}
        if "truncated" not in name:
            patterns[f"results rounded to {name}"] = rounding(truth.float())
        for words, result in patterns.items():
            cosine = _cosine(error, (result.double() - truth).flatten())
            if cosine > likeness:
                best, likeness = words, cosine
    return (best, likeness) if likeness >= SIMILAR else ("", likeness)


def _cosine(left: Tensor, right: Tensor) -> float:
    finite = torch.isfinite(left) & torch.isfinite(right)
    left, right = left[finite], right[finite]
    size = float(left.norm() * right.norm())
    return float(left @ right) / size if size else 0.0
