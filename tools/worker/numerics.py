"""Is a result right?  Errors against float64 truth, the limit they are held against, where they lie.

``err(y) = max(|y - y64| / max(rms(y64), |y64|))``; a candidate passes when its error is at most
``max(REFERENCE_FACTOR * err(reference), EPSILON_FACTOR * eps(dtype) * sqrt(reduction))`` and at most
`LARGEST_LIMIT`.  The rms keeps the relative error of small elements from exploding; the element's own size
keeps large ones, of which a heavy-tailed output has a few, from being held to less than their rounding.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from .patterns import describe

REFERENCE_FACTOR = 4.0
"""How many times the reference's own error a candidate may have."""
EPSILON_FACTOR = 8.0
LARGEST_LIMIT = 0.25
"""No larger error passes, whatever the reference's own is: zeros, a lost tile or a constant err by about 1, a
flipped sign by 2, and where rounding is as large as that no result tells right from wrong.  It is also what
sums in bfloat16 of thousands of products stay within."""
CONDITION_FACTOR = 4.0
"""How many times the effect of rounding the inputs once more, where that explains an error: a mean of numbers
of both signs may come out near nothing, on a task's own inputs too."""
SUM_GROWTH = 0.15
"""A sum of n products added one after the other errs by this times sqrt(n) more than rounding its operands
does: the root mean square of the additions' errors, eps/2/sqrt(3) * sqrt(1 + 2 + ... + n), over that of the
operands', eps * sqrt(2 n).  TF32 operands err 2000 times as much as rounded ones."""
KERNELBENCH_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}
"""KernelBench's atol and rtol, reported for comparison."""


@dataclass(frozen=True)
class Comparison:
    """One output of a candidate against the reference; `category` is empty when it is right."""

    passed: bool
    error: float
    reference_error: float
    limit: float
    kernelbench: bool
    undecided: bool = False
    """Neither right nor wrong: the error is too large to pass, and rounding alone might explain it."""
    category: str = ""
    message: str = ""
    detail: dict[str, Any] = field(default_factory=dict)


def compare(
    got: Tensor,
    own: Tensor,
    truth: Tensor,
    *,
    reduction: int,
    allowance: float = 0.0,
    lookalikes: Mapping[str, Tensor] | None = None,
) -> Comparison:
    """Hold a candidate's output against the reference's.

    Args:
        got: the candidate's result.
        own: the reference's, in its own precision.
        truth: the reference's in float64; the same as `own` for integers.
        reduction: length of the longest sum behind one element.
        allowance: more error that the input's conditioning explains.
        lookalikes: tensors that a wrong result might be a copy of, by name.
    """
    if got.shape != own.shape:
        return _refused("shape", f"the shape is {tuple(got.shape)}, not {tuple(own.shape)}")
    if got.dtype != own.dtype:
        return _refused("dtype", f"the dtype is {got.dtype}, not {own.dtype}")
    if not own.is_floating_point():
        return _exact(got, own, lookalikes or {})
    reference_error = relative_error(own, truth)
    rounding = max(REFERENCE_FACTOR * reference_error, allowance)
    limit = min(max(rounding, floor(own.dtype, reduction)), LARGEST_LIMIT)
    wrong_kind = ~same_kind(got, own, truth)
    errors = element_errors(got, truth, own.dtype)
    error = math.inf if wrong_kind.any() else _largest(errors)
    passed = not wrong_kind.any() and error <= limit
    verdict = Comparison(
        passed=passed,
        error=error,
        reference_error=reference_error,
        limit=limit,
        kernelbench=kernelbench_rule(got, own),
        undecided=limit < error <= rounding,
    )
    if passed or verdict.undecided:
        return verdict
    wrong = wrong_kind | ~(errors <= limit)
    detail = describe(wrong, got, truth, lookalikes or {})
    category = "nonfinite" if wrong_kind.any() else "numerics"
    return Comparison(
        **{
            **vars(verdict),
            "category": category,
            "message": _sentence(detail, error, limit),
            "detail": detail,
        }
    )


def relative_error(result: Tensor, truth: Tensor) -> float:
    """The largest of `element_errors`; 0 for no elements."""
    return _largest(element_errors(result, truth, result.dtype))


def element_errors(result: Tensor, truth: Tensor, dtype: torch.dtype) -> Tensor:
    """``|result - truth| / max(rms(truth), |truth|)`` by element, float64; 0 where either is not finite.

    Args:
        dtype: the output's, whose smallest normal number is the least that is divided by.
    """
    finite = torch.isfinite(result) & torch.isfinite(truth)
    exact = torch.where(finite, truth, 0.0).double()
    difference = torch.where(finite, result, 0.0).double().sub_(exact).abs_()
    return difference.div_(exact.abs_().clamp_(min=_scale(truth, dtype)))


def tolerance(truth: Tensor, own: Tensor, reduction: int) -> float:
    """The largest relative error that passes, by the rule at the top of this module."""
    rounding = REFERENCE_FACTOR * relative_error(own, truth)
    return min(max(rounding, floor(own.dtype, reduction)), LARGEST_LIMIT)


def floor(dtype: torch.dtype, reduction: int) -> float:
    """What an honest sum of so many products may err, however exact the reference was."""
    return EPSILON_FACTOR * torch.finfo(dtype).eps * math.sqrt(max(1, reduction))


def conditioning_factor(reduction: int, dtype: torch.dtype) -> float:
    """How many times the effect of rounding the inputs once more an honest result may err.

    Args:
        reduction: length of the longest sum; narrow types are summed in float32, whose error is nothing to
            theirs.
    """
    narrow = dtype in (torch.float16, torch.bfloat16)
    growth = 1.0 if narrow else max(1.0, SUM_GROWTH * math.sqrt(max(1, reduction)))
    return CONDITION_FACTOR * growth


def kernelbench_rule(got: Tensor, own: Tensor) -> bool:
    """KernelBench's allclose of a result with the reference's."""
    if got.shape != own.shape:
        return False
    bound = KERNELBENCH_TOLERANCE.get(own.dtype, 1e-4)
    return torch.allclose(got.to(own.dtype), own, atol=bound, rtol=bound)


def default_reduction(tensors: Sequence[Tensor], weights: Sequence[bool]) -> int:
    """A cautious guess at the longest sum behind one output element, from the operands' shapes alone.

    The elements of one output channel's weights where there are weight matrices (exact for linear and
    convolution layers), else of one row of the largest activation.  Sums over whole batches are longer
    than this says, which makes the limit stricter, never laxer.
    """
    matrices = [t for t in tensors if t.is_floating_point() and t.dim() >= 2]
    chosen = [t for t, weight in zip(tensors, weights, strict=True) if weight and t.dim() >= 2]
    return max((t[0].numel() if t.shape[0] else 1 for t in chosen or matrices), default=1)


def _scale(truth: Tensor, dtype: torch.dtype) -> float:
    """Root mean square of the finite elements, at least the smallest normal number of `dtype`."""
    values = truth[torch.isfinite(truth)].double()
    floor = torch.finfo(dtype).tiny
    if values.numel() == 0:
        return floor
    peak = float(values.abs().max())
    if peak == 0.0:
        return floor
    # Scaled first: squares of large float64 numbers overflow.
    return max(floor, peak * math.sqrt(float(((values / peak) ** 2).mean())))


def same_kind(got: Tensor, own: Tensor, truth: Tensor) -> Tensor:
    """Where `got` is finite, NaN or an infinity as the reference is.

    A result may also be what the truth is in the output's dtype: more accurate than the reference is
    not wrong.
    """
    rounded = truth.to(own.dtype)
    return (_kind(got) == _kind(own)) | (_kind(got) == _kind(rounded))


def _kind(values: Tensor) -> Tensor:
    """0 finite, 1 infinite, -1 minus infinity, 2 NaN."""
    kinds = torch.where(torch.isposinf(values), 1, torch.where(torch.isneginf(values), -1, 0))
    return torch.where(torch.isnan(values), 2, kinds)


def _exact(got: Tensor, own: Tensor, lookalikes: Mapping[str, Tensor]) -> Comparison:
    wrong = got.view(torch.uint8) != own.view(torch.uint8) if got.dtype is torch.bool else got != own
    if not wrong.any():
        return Comparison(passed=True, error=0.0, reference_error=0.0, limit=0.0, kernelbench=True)
    detail = describe(wrong, got, own, lookalikes)
    return Comparison(
        passed=False,
        error=math.inf,
        reference_error=0.0,
        limit=0.0,
        kernelbench=False,
        category="numerics",
        message=_sentence(detail, math.inf, 0.0),
        detail=detail,
    )


def _refused(category: str, message: str) -> Comparison:
    return Comparison(
        passed=False,
        error=math.inf,
        reference_error=0.0,
        limit=0.0,
        kernelbench=False,
        category=category,
        message=message,
    )


def _largest(values: Tensor) -> float:
    return float(values.max()) if values.numel() else 0.0


def _sentence(detail: Mapping[str, Any], error: float, limit: float) -> str:
    index = ", ".join(map(str, detail["index"]))
    against = f" (error {error:.3g}, limit {limit:.3g})" if math.isfinite(error) and limit else ""
    return (
        f"{detail['wrong']} of {detail['elements']} elements are wrong{against}: {detail['pattern']};"
        f" first at [{index}]: expected {detail['expected']}, got {detail['got']}"
    )
