"""How many compilers may run at once on this machine, counted over all stitch processes of the user."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from stitch_tui.tools.locks import first_free

JOB_BYTES = 2 << 30
"""Room for one nvcc: ordinary kernels take 0.3-0.5 GiB, CUTLASS templates 2 GiB and more."""


@asynccontextmanager
async def compile_slot(folder: Path) -> AsyncIterator[None]:
    """Wait for the right to run one compiler; the lock files lie in `folder`.

    The first slot is always open, so one build goes on however little memory is free; each further one asks
    for `JOB_BYTES`.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    async with first_free(OpenSlots(folder)):
        yield


class OpenSlots:
    """The slots that are open now; iterated anew at every attempt."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __iter__(self) -> Iterator[Path]:
        yield self.folder / "0"
        for number in range(1, len(os.sched_getaffinity(0))):
            if available_bytes() < JOB_BYTES:
                return
            yield self.folder / str(number)


def available_bytes() -> int:
    """Memory to be had without swapping, of the machine or within the control group's limit."""
    free = _field("MemAvailable") or JOB_BYTES
    return min(free, _group_headroom(Path("/sys/fs/cgroup")) or free)


def total_bytes() -> int:
    """The machine's memory, or the control group's limit where that is lower."""
    total = _field("MemTotal") or JOB_BYTES
    return min(total, _number(Path("/sys/fs/cgroup/memory.max")) or total)


def _field(name: str) -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


def _group_headroom(group: Path) -> int:
    limit, used = _number(group / "memory.max"), _number(group / "memory.current")
    return max(limit - used, 1) if limit else 0


def _number(path: Path) -> int:
    """The number in a control-group file; 0 when there is none (``max``, or no such file)."""
    try:
        text = path.read_text().strip()
    except OSError:
        return 0
    return int(text) if text.isdigit() else 0
