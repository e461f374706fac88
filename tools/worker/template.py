"""Forward's arguments with the tensors taken out, to be filled with other tensors."""

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree


class Template:
    """The nesting of forward's arguments and those leaves that are not tensors."""

    def __init__(self, args: Sequence[Any]) -> None:
        leaves, self.structure = pytree.tree_flatten(list(args))
        self.is_tensor = [isinstance(leaf, torch.Tensor) for leaf in leaves]
        self.scalars = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]

    def fill(self, tensors: Sequence[torch.Tensor]) -> list[Any]:
        """The arguments with `tensors` as their tensor leaves, in order."""
        given = iter(tensors)
        pairs = zip(self.is_tensor, self.scalars, strict=True)
        args: list[Any] = pytree.tree_unflatten(
            [next(given) if is_tensor else scalar for is_tensor, scalar in pairs], self.structure
        )
        return args

    def fits(self, args: Any) -> bool:
        """Have `args` the same nesting, with tensors in the same places?"""
        if not isinstance(args, (list, tuple)):
            return False
        other = Template(args)
        return other.structure == self.structure and other.is_tensor == self.is_tensor


def tensor_leaves(args: Sequence[Any]) -> list[torch.Tensor]:
    """The tensors in nested arguments, in order."""
    return [leaf for leaf in pytree.tree_leaves(list(args)) if isinstance(leaf, torch.Tensor)]
