"""A candidate and the headers of its own: what the cache key covers and the rewriter reads."""

import os
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools.build_cache import key_of
from stitch_tui.tools.emulator.toolchain import ABI, HEADERS, HERE
from stitch_tui.tools.regular_file import LARGEST_SOURCE_BYTES, read_regular

INCLUDE = re.compile(r"""^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]""", re.M)


@dataclass(frozen=True)
class Sources:
    """The ``.cu`` first, then every header it includes by a path of its own, directly or not."""

    main: Path
    texts: dict[Path, str]

    @property
    def sha256(self) -> str:
        return key_of(*(part for path, text in self.texts.items() for part in (self.name(path), text)))

    def local(self, includer: Path, name: str) -> Path | None:
        """The candidate's own file that an include means: beside the includer, else beside the ``.cu``."""
        if any((ours / name).is_file() for ours in (HEADERS, ABI)):
            return None
        beside = (folder / name for folder in (includer.parent, self.main.parent))
        return next((path.resolve() for path in beside if path.is_file()), None)

    def name(self, path: Path) -> str:
        """How diagnostics name a file: relative to the candidate's folder, free of this machine's paths."""
        return os.path.relpath(path, self.main.parent)


def read_sources(main: Path) -> Sources:
    """Read a candidate with its local headers; other includes are left alone.

    Raises:
        OSError: the candidate cannot be read.
    """
    main = main.resolve()
    texts: dict[Path, str] = {}
    sources = Sources(main, texts)
    waiting = [main]
    while waiting:
        path = waiting.pop(0)
        if path in texts:
            continue
        texts[path] = read_regular(path, LARGEST_SOURCE_BYTES).decode("utf-8", errors="replace")
        included = (sources.local(path, name) for name in INCLUDE.findall(texts[path]))
        waiting += [found for found in included if found]
    return sources


def is_candidates(file: str) -> bool:
    """Is a file that a compiler or addr2line names one of the candidate's, not ours and not the system's?"""
    foreign = HERE in Path(file).parents or file.startswith("/usr/")
    return bool(file) and "??" not in file and not foreign


def candidate_name(file: str) -> str:
    """The name a person knows the file by: debug information says ``././gemm.cu``."""
    return posixpath.normpath(file) if file else ""
