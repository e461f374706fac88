"""Kernel locks between processes, waited for without blocking the event loop.

`flock` belongs to the open file: it ends with its holder, however that dies, so nothing goes stale.
"""

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

FIRST_POLL_S = 0.005
LONGEST_POLL_S = 0.25


def try_lock(path: Path, *, shared: bool = False) -> int | None:
    """A descriptor that holds the lock on `path`, or None while others hold it; closing it releases.

    A holder may remove the file before it lets go; then the lock that counts is that of the next file.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            if _names(path, descriptor):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Does anybody hold the lock on `path` alone?  Changes nothing, and needs to read the file only.

    Raises:
        OSError: the file is there and cannot be asked.
    """
    while True:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        except (FileNotFoundError, NotADirectoryError):
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if _names(path, descriptor):
                return False
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)


def _names(path: Path, descriptor: int) -> bool:
    """Is the open file still the one of that name?"""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


async def acquire(paths: Iterable[Path], *, shared: bool = False, timeout: float | None = None) -> int:
    """Lock the first of `paths` that can be locked; the descriptor holds it until it is closed.

    `paths` is iterated anew at every attempt.  A timeout of None waits for ever.

    Raises:
        TimeoutError: none became free within `timeout` seconds.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    pause = FIRST_POLL_S
    while (descriptor := _any(paths, shared)) is None:
        if deadline is not None and time.monotonic() >= deadline:
            raise TimeoutError
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_POLL_S)
    return descriptor


@asynccontextmanager
async def first_free(
    paths: Iterable[Path], *, shared: bool = False, timeout: float | None = None
) -> AsyncIterator[int]:
    """Hold the lock that `acquire` gets while the context lasts."""
    descriptor = await acquire(paths, shared=shared, timeout=timeout)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _any(paths: Iterable[Path], shared: bool) -> int | None:
    return next((d for path in paths if (d := try_lock(path, shared=shared)) is not None), None)
