"""Read a file that somebody else may have put there: a pipe is not waited for, a device not read for ever."""

import errno
import os
import stat
from pathlib import Path

LARGEST_SOURCE_BYTES = 16_000_000
"""No source that a person or a model writes is longer."""


def read_regular(path: Path, largest: int) -> bytes:
    """The bytes of an ordinary file.

    Args:
        largest: bytes; a longer file is refused.

    Raises:
        OSError: it cannot be read, is no regular file, or is too long.
    """
    with open(path, "rb", opener=_without_waiting) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        content = file.read(largest + 1)
    if len(content) > largest:
        raise OSError(errno.EFBIG, f"more than {largest:,} bytes", str(path))
    return content


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
