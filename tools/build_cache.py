"""A folder of finished builds that processes share: one builds, the others wait and take the result.

::

    cache = BuildCache(cache_dir("nvcc"))
    async with cache.entry(key_of(source, flags)) as entry:
        if not entry.ready:
            with entry.staging() as folder:
                ...  # write files into folder
                entry.publish(folder)
        use(entry.path)
"""

import errno
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools.errors import EnvironmentFault
from stitch_tui.tools.locks import first_free, try_lock

RECENT_S = 3600.0
"""Entries used within this time are never pruned: somebody may be about to load them."""


def key_of(*parts: str | bytes) -> str:
    """Hex SHA-256 of the parts and of where each one ends."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """Hex SHA-256 of a file; empty when it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn a full disk, a spent quota or a missing permission into an error that names the path."""
    try:
        yield
    except OSError as error:
        denied = isinstance(error, PermissionError) and str(error.filename).startswith(str(path))
        if not denied and error.errno not in _UNWRITABLE:
            raise
        raise EnvironmentFault(
            "cannot write a build",
            where=str(path),
            why=error.strerror or str(error),
            advice="free some space there, or set XDG_CACHE_HOME to a folder on another disk",
        ) from error


@dataclass(frozen=True)
class Entry:
    """One key's place in the cache, locked while its context lasts."""

    path: Path
    """The finished build; exists only when it is `ready`."""
    _scratch: Path
    _failures: Path

    @property
    def ready(self) -> bool:
        return self.path.is_dir()

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A new empty folder on the cache's own file system; what was not published is deleted."""
        with disk_errors(self._scratch):
            folder = Path(tempfile.mkdtemp(prefix=f"{self.path.name[:12]}-", dir=self._scratch))
        try:
            with disk_errors(folder):
                yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def publish(self, folder: Path) -> Path:
        """Make `folder`, from `staging`, the entry in one step, in place of an older one."""
        with disk_errors(self.path):
            _discard(self.path, self._scratch)
            folder.rename(self.path)
        return self.path

    def fail(self, log: str) -> Path:
        """Keep the whole log of a build that is not published; returns its path."""
        path = self._failures / f"{self.path.name}.log"
        with disk_errors(path):
            path.write_text(log, encoding="utf-8")
        return path


class BuildCache:
    """Builds below one folder, each at ``builds/KEY``; logs of failed ones at ``failures/KEY.log``."""

    def __init__(self, root: Path) -> None:
        self.root = root = root.absolute()
        self._builds, self._locks, self._scratch = root / "builds", root / "locks", root / "scratch"
        self._failures = root / "failures"

    @asynccontextmanager
    async def entry(self, key: str, *, timeout: float | None = None) -> AsyncIterator[Entry]:
        """Hold the entry of `key`, a hex digest; others that want it wait.

        Keys share 256 lock files, so that none has to be deleted: never hold one entry inside another.

        Raises:
            TimeoutError: others held it for `timeout` seconds.
            EnvironmentFault: the folder cannot be written.
        """
        with disk_errors(self.root):
            for folder in (self._builds, self._locks, self._scratch, self._failures):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        async with first_free([self._lock(key)], timeout=timeout):
            entry = Entry(self._builds / key, self._scratch, self._failures)
            if entry.ready:
                os.utime(entry.path)
            yield entry

    def prune(self, max_bytes: int) -> int:
        """Delete the builds that were used longest ago until `max_bytes` remain; returns the bytes freed.

        Builds in use, recently used or locked stay.  Old logs of failures and what killed builds left
        behind go too.
        """
        self._clear_remains()
        builds = sorted(_last_used(self._builds), key=lambda item: item[1])
        sizes = {path: _size(path) for path, _ in builds}
        excess, freed = sum(sizes.values()) - max_bytes, 0
        for path, used in builds:
            if freed >= excess:
                break
            if time.time() - used > RECENT_S and self._delete(path):
                freed += sizes[path]
        return freed

    def _lock(self, key: str) -> Path:
        return self._locks / key[:2]

    def _delete(self, path: Path) -> bool:
        if (held := try_lock(self._lock(path.name))) is None:
            return False
        try:
            _discard(path, self._scratch)
        finally:
            os.close(held)
        return True

    def _clear_remains(self) -> None:
        for path, used in [*_last_used(self._scratch), *_last_used(self._failures)]:
            if time.time() - used > RECENT_S:
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)


def _discard(path: Path, scratch: Path) -> None:
    """Rename first: nobody ever sees a half-deleted build."""
    if path.exists():
        grave = Path(tempfile.mkdtemp(prefix="gone-", dir=scratch))
        path.rename(grave / path.name)
        shutil.rmtree(grave, ignore_errors=True)


def _last_used(parent: Path) -> list[tuple[Path, float]]:
    """What lies in `parent`, with the time of their last use; those that vanish meanwhile are left out."""
    found = []
    for path in parent.iterdir() if parent.is_dir() else ():
        try:
            found.append((path, path.stat().st_mtime))
        except FileNotFoundError:
            continue
    return found


def _size(folder: Path) -> int:
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            try:
                total += (Path(root) / name).lstat().st_blocks * 512
            except FileNotFoundError:
                continue
    return total
