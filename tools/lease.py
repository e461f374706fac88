"""The right to use a GPU, shared by all stitch processes of the user: many at once to check, one to time.

Two lock files for each GPU.  Whoever wants the GPU passes the *gate* first and keeps it while it waits, so
that a stream of checks cannot starve a timing.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from stitch_tui.tools.errors import EnvironmentFault
from stitch_tui.tools.locks import acquire, first_free
from stitch_tui.tools.paths import shared_dir

TOLD_S = 1.0
"""A wait that takes longer is told."""


class Lease:
    """Leases of one GPU.

    Args:
        uuid: the GPU's, as NVML names it.
        folder: where the lock files lie; None: the one that all of the user's processes share.
        waits: told `holder()` once in a wait that takes longer than `TOLD_S`.
    """

    def __init__(
        self, uuid: str, folder: Path | None = None, waits: Callable[[str], None] | None = None
    ) -> None:
        self.uuid, self._waits = uuid, waits or (lambda holder: None)
        name = re.sub(r"[^\w.-]", "_", uuid)
        folder = shared_dir("gpu") if folder is None else folder
        self._gate, self._lock = folder / f"{name}.gate", folder / f"{name}.lock"

    @asynccontextmanager
    async def shared(self, purpose: str, *, timeout: float | None = None) -> AsyncIterator[None]:
        """Use the GPU beside others, to check correctness.

        Args:
            purpose: what a process that waits is told, such as ``checking s03``.
            timeout: longest wait, seconds; None waits for ever.

        Raises:
            EnvironmentFault: others held the GPU all that time; says who.
        """
        async with self._hold(purpose, shared=True, timeout=timeout):
            yield

    @asynccontextmanager
    async def exclusive(self, purpose: str, *, timeout: float | None = None) -> AsyncIterator[None]:
        """Use the GPU alone, to time; arguments and errors as for `shared`."""
        async with self._hold(purpose, shared=False, timeout=timeout):
            yield

    def holder(self) -> str:
        """Who took the GPU last: ``pid 42, timing s03, for 12 s``; empty when nobody is known."""
        try:
            note = json.loads(self._lock.read_text())
            held_s = max(time.time() - note["since"], 0)
            return f"pid {note['pid']}, {note['purpose']}, for {held_s:.0f} s"
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    @asynccontextmanager
    async def _hold(self, purpose: str, *, shared: bool, timeout: float | None) -> AsyncIterator[None]:
        started = time.monotonic()
        told = asyncio.get_running_loop().call_later(TOLD_S, lambda: self._waits(self.holder()))
        try:
            async with first_free([self._gate], timeout=timeout):
                left = None if timeout is None else max(timeout - (time.monotonic() - started), 0)
                descriptor = await acquire([self._lock], shared=shared, timeout=left)
        except TimeoutError as error:
            raise EnvironmentFault(
                "the GPU is held by another stitch process",
                where=self.uuid,
                why=self.holder(),
                advice="wait for it, or end that process",
            ) from error
        except OSError as error:
            raise EnvironmentFault(
                "the GPU's lease cannot be taken",
                where=str(self._lock.parent),
                why=error.strerror or str(error),
                advice="remove what is in the way, or free space",
            ) from error
        finally:
            told.cancel()
        try:
            with suppress(OSError):  # a full disk: the note is only for those who wait
                _write(descriptor, {"pid": os.getpid(), "purpose": purpose, "since": time.time()})
            yield
        finally:
            os.close(descriptor)


def _write(descriptor: int, note: dict[str, object]) -> None:
    data = json.dumps(note).encode()
    os.pwrite(descriptor, data, 0)
    os.ftruncate(descriptor, len(data))
