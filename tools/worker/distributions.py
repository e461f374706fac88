"""Inputs that make a wrong kernel show itself, drawn for floating activations; nothing else is replaced."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

TASK = "task"
"""The reference's own inputs."""
REPAIRED, EXACT = "repaired", "exact integers"
"""Inputs and weights under which a wrong layer shows; under which nothing is rounded."""
TINY = 1e-3
"""Small enough that an epsilon or an absolute tolerance matters, large enough for half precision."""
LARGE = 1e3


@dataclass(frozen=True)
class Distribution:
    """`draw` makes a tensor of a shape and a dtype, on the generator's device.

    `ties`: many equal elements, so an argmax is not unique.
    """

    name: str
    draw: Callable[[tuple[int, ...], torch.dtype, torch.Generator], Tensor]
    ties: bool = False


def _normal(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=dtype, device=generator.device)


def _one_hot(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """One 1 in each row: a result built from it names the element that was read."""
    values = torch.zeros(shape, dtype=dtype, device=generator.device)
    if values.numel():
        rows = values.reshape(-1, shape[-1]) if shape else values.reshape(1, 1)
        column = _below(rows.shape[1], (rows.shape[0], 1), generator)
        rows.scatter_(1, column, 1.0)
    return values


def _sorted(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return _normal(shape, dtype, generator).flatten().sort().values.reshape(shape)


def _signed_zeros(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """+0, -0 and a few ones."""
    values = torch.tensor([0.0, -0.0, 1.0, -1.0], dtype=dtype, device=generator.device)
    return values[_below(4, shape, generator)]


def _integers(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """-4 to 4: sums and products stay exact, so any difference is a mistake of logic."""
    return (_below(9, shape, generator) - 4).to(dtype)


def _constant(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return torch.full(shape, 0.5, dtype=dtype, device=generator.device)


DISTRIBUTIONS = (
    Distribution("normal", _normal),
    Distribution("integers", _integers, ties=True),
    Distribution("one-hot", _one_hot, ties=True),
    Distribution("large", lambda *how: LARGE * _normal(*how)),
    Distribution("tiny", lambda *how: TINY * _normal(*how)),
    Distribution("constant", _constant, ties=True),
    Distribution("sorted", _sorted),
    Distribution("signed-zeros", _signed_zeros, ties=True),
)
"""In the order in which they are tried: what finds the commonest mistakes first."""


def replaced(
    tensors: list[Tensor], activations: list[bool], distribution: Distribution, seed: int
) -> list[Tensor]:
    """`tensors` with every floating activation drawn anew, same shape, dtype and device."""

    def drawn(tensor: Tensor, seed: int) -> Tensor:
        wide = torch.promote_types(tensor.dtype, torch.float32)
        return distribution.draw(tuple(tensor.shape), wide, generator(tensor, seed)).to(tensor.dtype)

    return [
        drawn(tensor, seed + place) if activation and tensor.is_floating_point() else tensor
        for place, (tensor, activation) in enumerate(zip(tensors, activations, strict=True))
    ]


def generator(tensor: Tensor, seed: int) -> torch.Generator:
    """Of the tensor's device: a GPU's inputs may have more elements than a CPU draws in seconds."""
    return torch.Generator(tensor.device).manual_seed(seed)


def _below(end: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randint(end, shape, generator=generator, device=generator.device)


def nudged(tensors: list[Tensor], seed: int) -> list[Tensor]:
    """Every floating tensor in float64 with each element off by up to one rounding error of its dtype."""
    return [_nudge(t, seed + place) if t.is_floating_point() else t for place, t in enumerate(tensors)]


def _nudge(tensor: Tensor, seed: int) -> Tensor:
    step = torch.finfo(tensor.dtype).eps
    sign = _below(2, tuple(tensor.shape), generator(tensor, seed)).mul(2).sub(1)
    return tensor.double() * (1 + step * sign)


def touched(tensor: Tensor, seed: int) -> Tensor:
    """A copy with about one element in a hundred changed, at least the first, the last and three more."""
    changed = tensor.clone()
    flat = changed.view(-1)
    if flat.numel():
        some = _below(flat.numel(), (3 + flat.numel() // 100,), generator(tensor, seed))
        where = torch.cat([some, some.new_tensor([0, flat.numel() - 1])])
        flat[where] = flat[where] * -0.5 + 0.75
    return changed


def reweighted(tensor: Tensor, positive: bool, seed: int) -> Tensor:
    """A weight as after a large training step; a buffer (a variance, say) only grows, so it stays valid."""
    if not tensor.is_floating_point() or not tensor.numel():
        return tensor
    wide = torch.promote_types(tensor.dtype, torch.float32)
    noise = _normal(tuple(tensor.shape), wide, generator(tensor, seed))
    if positive:
        return tensor * (1 + 0.5 * noise.abs()).to(tensor.dtype)
    size = float(tensor.double().pow(2).mean().sqrt()) or 0.1
    return (tensor + 0.5 * size * noise).to(tensor.dtype)
