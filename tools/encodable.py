"""Text that UTF-8 can hold, from text of others that it may not: JSON may name halves of characters."""

import re
from typing import Any

from stitch_tui.tools.json_texts import with_texts

_HALVES = re.compile("[\ud800-\udfff]")
INSTEAD = "\N{REPLACEMENT CHARACTER}"


def encodable(text: str) -> str:
    """`text` with each lone surrogate replaced."""
    return _HALVES.sub(INSTEAD, text)


def encodable_data(data: Any) -> Any:
    """JSON-like data with each lone surrogate in its texts replaced; keys too."""
    return with_texts(data, encodable)
