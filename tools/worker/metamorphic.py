"""What must change with the input and what must not: permuted, repeated, moved, reweighted calls."""

import secrets

import torch
from torch import Tensor

from . import numerics
from .distributions import TASK, reweighted, touched
from .examination import Examination
from .report import LARGEST

DETERMINISM_RUNS = 3
LIBRARY_CALLS, MODULE_CALLS = 10, 3
"""At least so many calls in a row, and up to twice as many: nobody knows how many."""
MOVED_BYTES = 40960


def metamorphic(exam: Examination, variant: str) -> None:
    """Changed inputs and weights at the same addresses; the same inputs again and again."""
    seed = secrets.randbits(31)
    tensors = exam.draw(variant, seed)
    _spread(exam, exam.trial(f"{TASK}/{variant} again", seed, tensors), tensors)
    if not exam.trials.metamorphic:
        return
    _permuted(exam, variant, tensors, seed)
    changed = [
        touched(tensor, seed) if activation and tensor.is_floating_point() else tensor
        for tensor, activation in zip(tensors, exam.border.activations, strict=True)
    ]
    exam.trial(f"a few elements changed in place/{variant}", seed, changed)
    if not all(exam.border.activations):
        heavier = [
            tensor if activation else reweighted(tensor, kind == "buffer", seed)
            for tensor, activation, kind in zip(
                tensors, exam.border.activations, exam.border.kinds, strict=True
            )
        ]
        exam.rig.bind(heavier)
        exam.trial(f"weights changed in place/{variant}", seed, heavier)
    _again_and_again(exam, variant)
    _elsewhere(exam, variant)


def _permuted(exam: Examination, variant: str, tensors: list[Tensor], seed: int) -> None:
    """The samples of the batch in another order, where the first dimension of all activations is one."""
    activations = [
        t for t, activation in zip(tensors, exam.border.activations, strict=True) if activation and t.dim()
    ]
    extents = {t.shape[0] for t in activations}
    if len(extents) != 1 or extents == {1} or not activations:
        return
    order = torch.randperm(extents.pop(), generator=torch.Generator().manual_seed(seed))
    turned = [
        tensor[order.to(tensor.device)].contiguous() if activation and tensor.dim() else tensor
        for tensor, activation in zip(tensors, exam.border.activations, strict=True)
    ]
    exam.trial(f"batch permuted/{variant}", seed, turned)


def _again_and_again(exam: Examination, variant: str) -> None:
    """More calls than a candidate can expect, new values in each: it cannot count how long it is watched."""
    calls = MODULE_CALLS if exam.module else LIBRARY_CALLS
    seed = secrets.randbits(31)
    base = exam.draw(variant, seed)
    exam.rig.bind(base)
    for _ in range(secrets.randbelow(calls) + calls):
        tensors = [
            _turned(tensor) if activation else tensor
            for tensor, activation in zip(base, exam.border.activations, strict=True)
        ]
        exam.trial(f"call after call/{variant}", seed, tensors, quiet=True)


def _turned(tensor: Tensor) -> Tensor:
    """The same elements in other places, floating ones scaled: new values without drawing them."""
    turned = tensor.flatten().roll(secrets.randbelow(max(1, tensor.numel()))).reshape(tensor.shape)
    return turned * (1 + secrets.randbelow(1000) / 1000) if tensor.is_floating_point() else turned


def _elsewhere(exam: Examination, variant: str) -> None:
    """Every tensor at another address: pointers kept from earlier calls lead nowhere."""
    seed = secrets.randbits(31)
    tensors = exam.place(variant, seed, shift=MOVED_BYTES)
    exam.trial(f"moved to other addresses/{variant}", seed, tensors)


def _spread(exam: Examination, first: list[Tensor], tensors: list[Tensor]) -> None:
    """Largest relative difference between runs on one input; 0 for a deterministic candidate."""
    spread = 0.0
    for _ in range(DETERMINISM_RUNS - 1):
        again, _done = exam.rig.run(tensors)
        for one, other in zip(first, again, strict=True):
            if not one.is_floating_point():
                spread = spread if torch.equal(one, other) else LARGEST
            else:
                spread = max(spread, numerics.relative_error(other, one.double()))
    exam.report.numbers["run_to_run_spread"] = spread
