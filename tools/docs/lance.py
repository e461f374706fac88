"""LanceDB, imported without the checks of arguments that only its REST client makes.

Pydantic prepares those for some 360 methods: half of the time of the import, and stitch calls none of them.
"""

from collections.abc import Callable
from typing import Any

import pydantic

_checked = pydantic.validate_call


def _unchecked(function: Callable[..., Any] | None = None, /, **_: Any) -> Callable[..., Any]:
    """In place of `pydantic.validate_call`, with options or without."""
    return function or (lambda method: method)


vars(pydantic)["validate_call"] = _unchecked
try:
    import lancedb
    from lancedb.index import FTS
    from lancedb.query import BooleanQuery, MatchQuery, Occur
    from lancedb.table import Table
finally:
    vars(pydantic)["validate_call"] = _checked

__all__ = ["FTS", "BooleanQuery", "MatchQuery", "Occur", "Table", "lancedb"]
