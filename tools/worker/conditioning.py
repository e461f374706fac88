"""How much of an error does the input explain?  What rounding it once more does to the exact result."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from . import numerics
from .distributions import nudged

NUDGES = 4
"""Roundings of the inputs that are tried: the effects of one on a single number may cancel."""


def allowance(
    exact: Callable[[list[Tensor]], list[Tensor]],
    tensors: list[Tensor],
    truth: Sequence[Tensor],
    reduction: int,
    seed: int,
) -> float:
    """The relative error that an honest result may have on an ill-conditioned input.

    Args:
        exact: the reference in float64.
        truth: its result on `tensors`.
        reduction: length of the longest sum behind one element.
    """
    errors = [
        numerics.relative_error(after, before)
        for way in range(NUDGES)
        for after, before in zip(exact(nudged(tensors, seed + way)), truth, strict=True)
        if before.is_floating_point()
    ]
    narrowest = max((t.dtype for t in tensors if t.is_floating_point()), key=_epsilon, default=torch.float32)
    return numerics.conditioning_factor(reduction, narrowest) * max(errors, default=0.0)


def _epsilon(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps
