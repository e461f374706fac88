"""Which processes belong together, how much memory they hold, and how much there is."""

import contextlib
import os
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_STATE, _PARENT, _SESSION, _RSS = 0, 1, 3, 21
"""Fields of ``/proc/PID/stat`` after the command's name, see proc(5)."""


def available_bytes() -> int:
    """Physical memory, or the container's limit where that is smaller."""
    physical = _PAGE * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):
        return min(physical, int(_CGROUP_LIMIT.read_text()))
    return physical


def session_members(session: int) -> dict[int, int]:
    """Process id -> resident bytes, of every process in a session; empty where there is no ``/proc``."""
    return {pid: int(row[_RSS]) * _PAGE for pid, row in _table().items() if int(row[_SESSION]) == session}


def descendants(*roots: int) -> set[int]:
    """Process ids of all that descend from `roots`, in whatever session, and of the roots themselves."""
    parents = {pid: int(row[_PARENT]) for pid, row in _table().items()}
    found = fresh = set(roots)
    while fresh := {pid for pid, parent in parents.items() if parent in fresh} - found:
        found = found | fresh
    return found


def _table() -> dict[int, list[str]]:
    """Fields of every process that lives: one that has ended and waits to be reaped does not."""
    rows = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_text(errors="replace").rpartition(")")[2].split()
            if len(fields) > _RSS and fields[_STATE] not in "ZX":
                rows[int(entry.parent.name)] = fields
    return rows
