"""Text that UTF-8 can hold, from text of others that it may not: JSON may name halves of characters."""

import re
from collections.abc import Mapping
from typing import Any

_HALVES = re.compile("[\ud800-\udfff]")
INSTEAD = "\N{REPLACEMENT CHARACTER}"


def encodable(text: str) -> str:
    """`text` with each lone surrogate replaced."""
    return _HALVES.sub(INSTEAD, text)


def encodable_data(data: Any) -> Any:
    """JSON-like data with each lone surrogate in its texts replaced; keys too."""
    if isinstance(data, str):
        return encodable(data)
    if isinstance(data, Mapping):
        return {encodable_data(key): encodable_data(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [encodable_data(item) for item in data]
    return data
