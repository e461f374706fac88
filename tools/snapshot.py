"""A candidate's source with the local headers it includes, read once: what is hashed is what is compiled."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.regular_file import LARGEST_SOURCE_BYTES, read_regular

STAGED = "candidate.cu"
"""Name under which a source is compiled: the names that people and models choose reach no command line."""
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
        UsageError: the source cannot be read, is no ordinary file, or is larger than any source is.
    """
    try:
        content = read_regular(source, LARGEST_SOURCE_BYTES)
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
        found = next(_readable(name.decode("utf-8", errors="replace"), (folder, *roots)), None)
        if found and (path := found[0]) not in headers:
            headers[path] = found[1]
            _follow(headers[path], path.parent, roots, headers)


def _readable(name: str, folders: Sequence[Path]) -> Iterator[tuple[Path, bytes]]:
    """Path and content of what can be read: what cannot, the compiler reports at its line."""
    for folder in folders:
        try:
            path = (folder / name).resolve()
            content = read_regular(path, LARGEST_SOURCE_BYTES)
        except (OSError, ValueError):  # ValueError: a name that no file can have
            continue
        yield path, content
