"""How much of an HTTP answer is read: whatever a server sends, it cannot fill this machine's memory."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from stitch_tui.agents.chat.faults import FaultKind, ModelFault

MOST_BYTES = 64 << 20
"""Of one HTTP answer: more than a long one streamed token by token, or a batch of long vectors, takes."""


async def bound(response: Any) -> None:
    """Hook for an HTTP client: what it reads of a response ends with a fault where it is too much.

    Bytes are counted as they come, so that they must not be packed.

    Raises:
        ModelFault: they are, although that was not asked for.
    """
    where = str(response.request.url.copy_with(userinfo=b"", query=None))
    packed = response.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("", "identity"):
        raise ModelFault(FaultKind.PROTOCOL, f"it is packed, unasked: {packed}", where=where)
    response.aiter_raw = partial(_counted, response.aiter_raw, where)


async def _counted(
    read: Callable[[int | None], AsyncIterator[bytes]], where: str, chunk_size: int | None = None
) -> AsyncIterator[bytes]:
    left = MOST_BYTES
    async for piece in read(chunk_size):
        left -= len(piece)
        if left < 0:
            raise ModelFault(FaultKind.PROTOCOL, f"over {MOST_BYTES:,} bytes", where=where)
        yield piece
