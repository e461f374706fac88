"""The texts within JSON-like data."""

from collections.abc import Callable, Mapping
from typing import Any


def with_texts(data: Any, change: Callable[[str], str]) -> Any:
    """`data` with each of its texts, keys too, as `change` makes it."""
    if isinstance(data, str):
        return change(data)
    if isinstance(data, Mapping):
        return {with_texts(key, change): with_texts(value, change) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [with_texts(item, change) for item in data]
    return data
