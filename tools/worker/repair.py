"""Weights and inputs under which a reference's results tell right from wrong: for checks, never for timing.

With torch's default weights a deep network's signal dies, and positive inputs hide missing branches; then
nearly any result is near enough.  Repaired: weights that keep the signal's size (He et al. 2015), gains and
biases of their own, BatchNorm's statistics calibrated on the new weights, inputs of both signs.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .distributions import generator
from .faults import Fault
from .reference import Reference
from .template import Template, tensor_leaves

OF_STATE = 1 << 30
"""Added to the seed of weights: under that of inputs they would be the inputs' own numbers, and a product of
both symmetric, so that its transpose passed.  (Of a seed torch's generator on a CPU takes 32 bits.)"""


def repaired_state(reference: Reference, args: Sequence[Any], seed: int) -> dict[str, Tensor]:
    """New values for all floating parameters and buffers, by name, drawn under `seed`.

    Args:
        args: forward's arguments, on which BatchNorm's statistics are calibrated.
    """
    parameters = enumerate(reference.parameters.items())
    state = {name: _drawn(name, value, seed + OF_STATE + place) for place, (name, value) in parameters}
    return state | _calibrated(reference, args, state)


def signed_inputs(tensors: Sequence[Tensor], seed: int) -> list[Tensor]:
    """Floating tensors drawn from N(0, 1), same shape, dtype and device; the others as they are."""
    return [_normal(t, seed + place) if t.is_floating_point() else t for place, t in enumerate(tensors)]


def with_inputs(args: Sequence[Any], tensors: Sequence[Tensor]) -> list[Any]:
    """`args` with its tensor leaves replaced, in order."""
    return list(Template(list(args)).fill(list(tensors)))


def signed_arguments(args: Sequence[Any], seed: int) -> list[Any]:
    """Forward's arguments with signed inputs."""
    return with_inputs(args, signed_inputs(tensor_leaves(list(args)), seed))


def _normal(like: Tensor, seed: int) -> Tensor:
    drawn = torch.randn(like.shape, generator=generator(like, seed), device=like.device)
    return drawn.to(like.dtype)


def _drawn(name: str, value: Tensor, seed: int) -> Tensor:
    if not value.is_floating_point() or not value.numel():
        return value
    noise = _normal(value, seed)
    if value.dim() >= 2:
        return noise * math.sqrt(2.0 / max(1, value[0].numel()))
    gain = name.rpartition(".")[2] in ("weight", "gamma", "scale", "gain")
    return 1 + 0.3 * noise if gain else 0.3 * noise


def _calibrated(reference: Reference, args: Sequence[Any], state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Buffers with the statistics that normalisation layers meet with the new weights."""
    norms = {
        path: module
        for path, module in reference.module.named_modules()
        if isinstance(module, nn.modules.batchnorm._NormBase) and module.running_mean is not None
    }
    buffers = dict(reference.buffers)
    if not norms:
        return buffers
    kept = {path: module.momentum for path, module in norms.items()}
    was = reference.module.training
    try:
        reference.module.train()
        for module in norms.values():
            module.momentum = 1.0  # the statistics of this pass alone
        after = reference.forward(args, state).buffers
    except Fault:
        return buffers
    finally:
        reference.module.train(was)
        for path, module in norms.items():
            module.momentum = kept[path]
    for path in norms:
        for name in ("running_mean", "running_var"):
            place = f"{path}.{name}" if path else name
            if place in after:
                buffers[place] = after[place].detach().clone()
    return buffers
