"""How much memory a session of processes holds, and how much there is."""

import contextlib
import os
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_SESSION, _RSS = 3, 21
"""Fields of ``/proc/PID/stat`` after the command's name, see proc(5)."""


def available_bytes() -> int:
    """Physical memory, or the container's limit where that is smaller."""
    physical = _PAGE * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):
        return min(physical, int(_CGROUP_LIMIT.read_text()))
    return physical


def session_members(session: int) -> dict[int, int]:
    """Process id -> resident bytes, of every process in a session; empty where there is no ``/proc``."""
    members = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = entry.read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[_SESSION]) == session:
                members[int(entry.parent.name)] = int(fields[_RSS]) * _PAGE
    return members
