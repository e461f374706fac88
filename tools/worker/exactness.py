"""Small integers, weights included: every product and sum is exact in any order, so nothing is rounding."""

import secrets

import torch
from torch import Tensor

from .candidate_fault import CandidateFault
from .distributions import EXACT, generator
from .examination import Examination

EXACT_BELOW = {torch.float32: 1 << 24, torch.float16: 1 << 11, torch.bfloat16: 1 << 8}
"""Integers up to here have no rounding in the dtype."""
MONOTONE = {
    f"aten.{name}"
    for name in (
        "mm.default", "bmm.default", "matmul.default", "linear.default", "addmm.default",
        "convolution.default", "conv1d.default", "conv2d.default", "conv3d.default",
        "add.Tensor", "mul.Tensor", "relu.default", "sum.default", "sum.dim_IntList", "amax.default",
        "t.default", "transpose.int", "permute.default", "view.default", "reshape.default",
        "_unsafe_view.default", "clone.default", "expand.default", "unsqueeze.default", "squeeze.dim",
        "flatten.using_ints", "cat.default", "max_pool2d.default", "dropout.default",
    )
}  # fmt: skip
"""Operators that make integers of integers, and whose result on absolute values bounds every partial sum."""


def exact_integers(exam: Examination, variant: str) -> None:
    """One trial with integers for every floating operand, where the graph keeps them exact.

    A difference of half or more is a mistake of logic, whatever the tolerance says; less may come from
    algebra that divides (Winograd), which the usual limit judges.
    """
    if not exam.target.operators() <= MONOTONE or exam.target.random:
        return
    seed = secrets.randbits(31)
    base = exam.place(variant, seed)
    tensors = _integers(base, exam.border.activations, seed)
    if tensors is None:
        return
    own, exact = exam.own(tensors, seed), exam.target.evaluate(tensors, "f64", variant)
    sizes = exam.target.evaluate([t.abs() for t in tensors], "f64", variant)
    for size, result, true in zip(sizes, own, exact, strict=True):
        limit = EXACT_BELOW.get(result.dtype, 0)
        if not size.numel() or not float(size.max()) < limit or not torch.equal(result.double(), true):
            return
    exam.rig.bind(tensors)
    got = exam.trial(f"{EXACT}/{variant}", seed, tensors, own=own)
    for name, result, true in zip(exam.border.outputs, got, exact, strict=True):
        wrong = (result.to(true.device).double() - true).abs() >= 0.5
        if wrong.any():
            first = wrong.nonzero()[0].tolist()
            raise CandidateFault(
                "numerics",
                "a mistake of logic: operands are small integers, every sum is exact in any order, and"
                f" {int(wrong.sum())} elements differ; first at {first}:"
                f" expected {float(true[tuple(first)]):g}, got {float(result[tuple(first)]):g}",
                where=f"{EXACT}/{variant}, output {name}",
                detail={"index": first, "wrong": int(wrong.sum()), "elements": wrong.numel()},
            )


def _integers(base: list[Tensor], activations: list[bool], seed: int) -> list[Tensor] | None:
    """-4 to 4 for activations, -2 to 2 for state; None when an operand is not of a dtype for it."""
    drawn = []
    for place, (tensor, activation) in enumerate(zip(base, activations, strict=True)):
        if tensor.dtype not in EXACT_BELOW:
            return None
        most, numbers = 4 if activation else 2, generator(tensor, seed + place)
        values = torch.randint(-most, most + 1, tensor.shape, generator=numbers, device=tensor.device)
        drawn.append(values.to(tensor.dtype))
    return drawn
