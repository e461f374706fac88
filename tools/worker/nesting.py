"""Nested arguments with tensors put back in their places; what a module's runner needs of it."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor


def filled(nested: Any, tensors: Sequence[Tensor]) -> Any:
    """The arguments that an ``arguments`` line describes, with `tensors` in their places."""
    if isinstance(nested, list):
        return [filled(item, tensors) for item in nested]
    if isinstance(nested, dict):
        if nested.keys() == {"tensor"}:
            return tensors[nested["tensor"]]
        return {key: filled(item, tensors) for key, item in nested.items()}
    return nested
