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
    """`draw` makes a float64 tensor of a shape; `ties`: many equal elements, so an argmax is not unique."""

    name: str
    draw: Callable[[tuple[int, ...], torch.Generator], Tensor]
    ties: bool = False


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _one_hot(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """One 1 in each row: a result built from it names the element that was read."""
    values = torch.zeros(shape, dtype=torch.float64)
    if values.numel():
        rows = values.reshape(-1, shape[-1]) if shape else values.reshape(1, 1)
        column = torch.randint(rows.shape[1], (rows.shape[0], 1), generator=generator)
        rows.scatter_(1, column, 1.0)
    return values


def _sorted(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return _normal(shape, generator).flatten().sort().values.reshape(shape)


def _signed_zeros(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """+0, -0 and a few ones."""
    choice = torch.randint(4, shape, generator=generator)
    return torch.tensor([0.0, -0.0, 1.0, -1.0], dtype=torch.float64)[choice]


def _integers(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """-4 to 4: sums and products stay exact, so any difference is a mistake of logic."""
    return torch.randint(-4, 5, shape, generator=generator).double()


DISTRIBUTIONS = (
    Distribution("normal", _normal),
    Distribution("integers", _integers, ties=True),
    Distribution("one-hot", _one_hot, ties=True),
    Distribution("large", lambda shape, generator: LARGE * _normal(shape, generator)),
    Distribution("tiny", lambda shape, generator: TINY * _normal(shape, generator)),
    Distribution("constant", lambda shape, generator: torch.full(shape, 0.5, dtype=torch.float64), ties=True),
    Distribution("sorted", _sorted),
    Distribution("signed-zeros", _signed_zeros, ties=True),
)
"""In the order in which they are tried: what finds the commonest mistakes first."""


def replaced(
    tensors: list[Tensor], activations: list[bool], distribution: Distribution, seed: int
) -> list[Tensor]:
    """`tensors` with every floating activation drawn anew, same shape, dtype and device."""
    generator = torch.Generator().manual_seed(seed)
    return [
        distribution.draw(tuple(t.shape), generator).to(device=t.device, dtype=t.dtype)
        if activation and t.is_floating_point()
        else t
        for t, activation in zip(tensors, activations, strict=True)
    ]


def nudged(tensors: list[Tensor], seed: int) -> list[Tensor]:
    """Every floating tensor in float64 with each element off by up to one rounding error of its dtype."""
    generator = torch.Generator().manual_seed(seed)
    return [_nudge(t, generator) if t.is_floating_point() else t for t in tensors]


def _nudge(tensor: Tensor, generator: torch.Generator) -> Tensor:
    step = torch.finfo(tensor.dtype).eps
    sign = torch.randint(0, 2, tuple(tensor.shape), generator=generator).mul(2).sub(1).to(tensor.device)
    return tensor.double() * (1 + step * sign)


def touched(tensor: Tensor, seed: int) -> Tensor:
    """A copy with about one element in a hundred changed, at least the first, the last and three more."""
    generator = torch.Generator().manual_seed(seed)
    changed = tensor.clone()
    flat = changed.view(-1)
    if flat.numel():
        some = torch.randint(flat.numel(), (3 + flat.numel() // 100,), generator=generator)
        where = torch.cat([some, torch.tensor([0, flat.numel() - 1])]).to(flat.device)
        flat[where] = flat[where] * -0.5 + 0.75
    return changed


def reweighted(tensor: Tensor, positive: bool, seed: int) -> Tensor:
    """A weight as after a large training step; a buffer (a variance, say) only grows, so it stays valid."""
    if not tensor.is_floating_point() or not tensor.numel():
        return tensor
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(tuple(tensor.shape), generator=generator).to(tensor.device)
    if positive:
        return tensor * (1 + 0.5 * noise.abs()).to(tensor.dtype)
    size = float(tensor.double().pow(2).mean().sqrt()) or 0.1
    return (tensor + 0.5 * size * noise).to(tensor.dtype)
