"""A candidate and the headers of its own: what the cache key covers and the rewriter reads."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools.emulator.store import digest

LOCAL_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.M)


@dataclass(frozen=True)
class Sources:
    """The ``.cu`` first, then every header it includes by a path of its own, directly or not."""

    main: Path
    texts: dict[Path, str]

    @property
    def sha256(self) -> str:
        return digest(*(part for path, text in self.texts.items() for part in (self.name(path), text)))

    def name(self, path: Path) -> str:
        """How diagnostics name a file: relative to the candidate's folder, so free of this machine's paths."""
        return os.path.relpath(path, self.main.parent)


def read_sources(main: Path) -> Sources:
    """Read a candidate with its local headers; an include that is not beside the including file is left alone.

    Raises:
        OSError: the candidate cannot be read.
    """
    main = main.resolve()
    texts: dict[Path, str] = {}
    waiting = [main]
    while waiting:
        path = waiting.pop(0)
        if path in texts:
            continue
        texts[path] = path.read_text(encoding="utf-8", errors="replace")
        named = (path.parent / name for name in LOCAL_INCLUDE.findall(texts[path]))
        waiting += [found.resolve() for found in named if found.is_file()]
    return Sources(main, texts)
