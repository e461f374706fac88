"""A candidate's source with the local headers it includes, read once: what is hashed is what is compiled."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools.errors import UsageError

STAGED = "candidate.cu"
"""Name under which a source is compiled: the names that people and models choose reach no command line."""
LARGEST_BYTES = 16_000_000
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Snapshot:
    """A source and its headers as they were at one moment."""

    source: bytes
    headers: dict[Path, bytes]
    """Contents by resolved path, of everything that ``#include "..."`` reaches below the given folders."""
    folder: Path
    """Where the source lies."""

    @property
    def text(self) -> str:
        """Source and headers as one text, for questions such as "does it include cuBLAS"."""
        return b"\n".join([self.source, *self.headers.values()]).decode("utf-8", errors="replace")

    def fingerprint(self) -> list[bytes]:
        """Contents that decide what is built, without the place where they lie."""
        parts = [self.source]
        for path in sorted(self.headers):
            name = path.relative_to(self.folder) if path.is_relative_to(self.folder) else path
            parts += [str(name).encode(), self.headers[path]]
        return parts

    def write(self, folder: Path) -> None:
        """Lay the source out as `STAGED` with its own folder's headers beside it."""
        (folder / STAGED).write_bytes(self.source)
        for path, content in self.headers.items():
            if path.is_relative_to(self.folder):
                copy = folder / path.relative_to(self.folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content)


def take(source: Path, include: Sequence[Path]) -> Snapshot:
    """Read `source` and the headers that it includes with quotes, from its folder and from `include`.

    Raises:
        UsageError: the source cannot be read, or is larger than any source is.
    """
    try:
        if source.stat().st_size > LARGEST_BYTES:
            raise UsageError("the source is too large to compile", where=str(source))
        content = source.read_bytes()
    except OSError as error:
        raise UsageError(
            "cannot read the source", where=str(source), why=error.strerror or str(error)
        ) from error
    folder = source.resolve().parent
    headers: dict[Path, bytes] = {}
    _follow(content, folder, (folder, *include), headers)
    return Snapshot(content, headers, folder)


def _follow(content: bytes, folder: Path, roots: Sequence[Path], headers: dict[Path, bytes]) -> None:
    for name in _INCLUDE.findall(content):
        path = next(_readable(name.decode("utf-8", errors="replace"), (folder, *roots)), None)
        if path and path not in headers:
            headers[path] = path.read_bytes()
            _follow(headers[path], path.parent, roots, headers)


def _readable(name: str, folders: Sequence[Path]) -> Iterator[Path]:
    """Ordinary files of a header's size: no device, no pipe that would never end."""
    for folder in folders:
        path = (folder / name).resolve()
        if path.is_file() and path.stat().st_size <= LARGEST_BYTES:
            yield path
