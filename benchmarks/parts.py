"""A benchmark in parts, each of which may fail alone."""

import traceback
from collections.abc import Awaitable
from typing import Any


async def kept(part: Awaitable[Any]) -> Any:
    """What was measured; what goes wrong costs this part alone, and its row says why."""
    try:
        return await part
    except Exception as error:
        traceback.print_exc()
        return {"ok": False, "why": f"{type(error).__name__}: {error}"}
