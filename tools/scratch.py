"""Temporary folders that no kill leaves behind for good.

All of a process's lie in one folder of its own, which it holds a lock in and removes at its end.  Where it
was killed instead, the next process of stitch's that needs such a folder removes it.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from stitch_tui.tools.atomic_write import writing
from stitch_tui.tools.locks import try_lock
from stitch_tui.tools.paths import temporary_dir

VARIABLE = "_STITCH_SCRATCH"
"""Tells a worker where its temporary folders shall lie: in those of the process that started it."""
_LOCK = "lock"


@contextmanager
def folder(prefix: str) -> Iterator[Path]:
    """A temporary folder, removed when the context ends."""
    with tempfile.TemporaryDirectory(prefix=prefix, dir=own()) as made:
        yield Path(made)


@cache
def own() -> Path:
    """This process's folder, made when first needed; those whose owners are gone are removed then.

    Raises:
        EnvironmentFault: it cannot be made.
    """
    parent = temporary_dir()
    for left in parent.iterdir():
        _remove_if_left(left)
    while True:
        with writing(parent, "cannot make a temporary folder"):
            made = Path(tempfile.mkdtemp(dir=parent))
        with suppress(FileNotFoundError):  # swept before it was locked
            if (held := try_lock(made / _LOCK)) is not None:
                atexit.register(_remove, made, held)
                return made


def _remove_if_left(path: Path) -> None:
    with suppress(OSError):  # another one removes it too
        if (held := try_lock(path / _LOCK)) is not None:
            _remove(path, held)


def _remove(path: Path, held: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(held)
