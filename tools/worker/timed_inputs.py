"""Which inputs timed launches rotate through: draws of the task's own, as many sets as memory allows."""

import secrets
from collections.abc import Sequence

import torch
from torch import Tensor

from .slots import Target
from .timed_rig import is_mixable
from .variants import FULL

MEMORY_SHARE = 0.25
"""Of the free device memory, for the rotating sets of all contestants together."""


def drawn(target: Target) -> list[Tensor]:
    """Inputs of full size that nobody has seen."""
    return [t.detach().contiguous() for t in target.draw(FULL, secrets.randbits(31))]


def others(target: Target, tensors: Sequence[Tensor], count: int) -> list[list[Tensor]]:
    """So many more draws of the inputs that cannot be mixed; none where all can."""
    kept = [
        slot.kind != "activation" or is_mixable(tensor)
        for slot, tensor in zip(target.inputs, tensors, strict=True)
    ]
    if all(kept):
        return []
    return [
        [old if keep else new for keep, old, new in zip(kept, tensors, drawn(target), strict=True)]
        for _ in range(count)
    ]


def affordable(target: Target, tensors: Sequence[Tensor], own: Sequence[Tensor], device: torch.device) -> int:
    """How many sets the device's memory allows: inputs of judge and candidate and aside, and results as they
    are delivered and kept."""
    if device.type != "cuda":
        return 1 << 30
    inputs = [t for t, slot in zip(tensors, target.inputs, strict=True) if slot.kind == "activation"]
    nbytes = sum(t.nbytes for t in (*inputs, *inputs, *inputs, *own, *own))
    free, _ = torch.cuda.mem_get_info(device)
    return int(MEMORY_SHARE * free / max(1, nbytes))
