"""Why nvcc failed when it was not for what the candidate says: the machine, memory, or no reason at all."""

import re
from pathlib import Path

from stitch_tui.tools import process
from stitch_tui.tools.errors import EnvironmentFault
from stitch_tui.tools.verdict import Category, Finding

_MACHINE = (
    (
        r"No space left on device|Disk quota exceeded",
        "free some space, or set XDG_CACHE_HOME to another disk",
    ),
    (r"unsupported GNU version|unsupported clang version", "name an older host compiler in NVCC_CCBIN"),
    (
        r"CUDA compiler and CUDA toolkit headers are incompatible",
        "install nvcc and its headers in one version",
    ),
    (r"cannot find -lcuda(rt_static|devrt)", "install the CUDA runtime that belongs to this nvcc"),
    (r"Unsupported gpu architecture", "install a CUDA toolkit that knows this GPU"),
    (r"Failed to preprocess host compiler properties|[Cc]annot find compiler", "install g++"),
)
"""Complaints of the machine, not of the candidate: pattern and advice."""

_STARVED = r"signal 9\b|[Oo]ut of memory|memory exhausted|bad_alloc|Cannot allocate memory"


def compiler_error(category: Category, message: str) -> Finding:
    """A finding about the build as a whole."""
    return Finding(category=category, message=message, detail={"severity": "error", "tool": "nvcc"})


def raise_if_machine(log: str, source: str, folder: Path) -> None:
    """Raise for what no change of the candidate can cure; words that it wrote itself do not count."""
    for pattern, advice in _MACHINE:
        if not re.search(pattern, source) and (line := re.search(f".*(?:{pattern}).*", log)):
            raise EnvironmentFault(
                "nvcc cannot work here", where=str(folder.parent), why=line[0].strip(), advice=advice
            )


def starved(done: process.Finished, log: str, source: str) -> bool:
    """Whether a compiler hit its memory limit or was killed for memory."""
    return done.returncode == -9 or bool(re.search(_STARVED, log) and not re.search(_STARVED, source))


def unexplained(done: process.Finished, log: str) -> Finding:
    """nvcc failed and no compiler gave a reason that we could read."""
    tail = "\n".join(log.splitlines()[-10:])
    return compiler_error(Category.BUILD_ERROR, f"nvcc ended with status {done.returncode}\n{tail}".rstrip())
