"""The build cache: keyed by content, published whole by rename, built once by one process at a time."""

import asyncio
import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path

from stitch_tui.tools.build_cache import disk_errors

POLL_S = 0.02
"""How often a waiting process looks whether the other builder is done."""


def digest(*parts: str | bytes) -> str:
    """SHA-256 over length-prefixed parts, as hex: no two lists of parts share one."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(f"{len(data)}:".encode())
        total.update(data)
    return total.hexdigest()


def digest_files(paths: Iterable[Path]) -> str:
    """One digest for the names and contents of files."""
    return digest(*(part for path in sorted(paths) for part in (path.name, path.read_bytes())))


class Store:
    """A directory of finished results, safe to share between processes."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._make()

    def _make(self) -> None:
        """The folders; they may be deleted at any time."""
        with disk_errors(self.root):
            for folder in (self.root, self.root / "locks"):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    @contextlib.asynccontextmanager
    async def only_builder(self, key: str) -> AsyncIterator[None]:
        """Hold the key's lock; waits, without blocking the loop, while another process builds it."""
        self._make()
        with disk_errors(self.root):
            lock = (self.root / "locks" / key).open("w")
        with lock:
            while not _taken(lock.fileno()):  # noqa: ASYNC110 - another process holds it: there is no event to wait for
                await asyncio.sleep(POLL_S)
            yield

    @contextlib.contextmanager
    def workspace(self) -> Iterator[Path]:
        """A private directory beside the results (so that a rename publishes), gone afterwards."""
        with disk_errors(self.root):
            path = Path(tempfile.mkdtemp(prefix="building-", dir=self.root))
        try:
            with disk_errors(path):
                yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def publish(self, made: Path, name: str) -> Path:
        """Move a finished file or folder to its final name in one step."""
        final = self.root / name
        with disk_errors(self.root):
            if final.is_dir():
                shutil.rmtree(final)
            os.replace(made, final)
        return final


def file_digest(path: Path) -> str:
    """SHA-256 of a file as hex; empty when it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
