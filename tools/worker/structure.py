"""How tensors are nested in forward's arguments and results, as JSON.

``"tensor"`` is the next of the flat tensors; ``{"tuple": [...]}``, ``{"list": [...]}`` and
``{"dict": {name: ...}}`` nest; ``{"value": x}`` is a plain value.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import torch

from .encoding import dtype_name


def structure_of(value: Any) -> Any:
    """The nesting of a value whose leaves are tensors or plain values."""
    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, dict):
        return {"dict": {str(name): structure_of(item) for name, item in value.items()}}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [structure_of(item) for item in value]}
    return {"value": value}


def arguments_of(module: torch.nn.Module, args: Sequence[Any]) -> dict[str, Any]:
    """The nesting of each positional argument, by the name that forward gives it."""
    names = [
        name
        for name, parameter in inspect.signature(module.forward).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    names += [f"arg{position}" for position in range(len(names), len(args))]
    return {name: structure_of(arg) for name, arg in zip(names, args, strict=False)}


def written_constants(module: torch.nn.Module, constants: dict[str, torch.Tensor]) -> dict[str, Any]:
    """Values of the constants that lie in forward itself: those that are no attribute of the module."""
    return {
        target: {"values": value.cpu().tolist(), "dtype": dtype_name(value.dtype)}
        for target, value in constants.items()
        if not _is_attribute(module, target)
    }


def _is_attribute(module: torch.nn.Module, target: str) -> bool:
    owner: Any = module
    for part in target.split("."):
        if not hasattr(owner, part):
            return False
        owner = getattr(owner, part)
    return isinstance(owner, torch.Tensor)
