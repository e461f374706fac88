"""Everything that a candidate started: found by descent, weighed, and ended, whatever it did to get away.

The judge adopts orphans below it (`prctl(2)`, ``PR_SET_CHILD_SUBREAPER``), so a candidate's process that
forked twice and made a session of its own is still a descendant of the judge.
"""

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MEMORY_SHARE = 0.8
"""Share of the memory that is free when a candidate starts, which it may hold."""
PROCESS_LIMIT = 256
"""Processes of one candidate, threads not counted."""
DISK_LIMIT_BYTES = 256 << 20
"""What a candidate may write into its folders together."""
_PR_SET_CHILD_SUBREAPER = 36
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PARENT, _SESSION, _RESIDENT, _SHARED = 1, 3, 1, 2
"""Fields of ``/proc/PID/stat`` after the command's name, and of ``statm``: see proc(5)."""
_SWEEPS = 50
_DEATH_S = 1.0
"""Longest wait for a killed process to be gone."""


@dataclass(frozen=True)
class Process:
    """One row of ``/proc``."""

    pid: int
    parent: int
    session: int


@dataclass(frozen=True)
class Excess:
    """A limit that a candidate went over, and the verdict's category for that."""

    category: str
    what: str


@dataclass(frozen=True)
class Limits:
    """What one candidate may hold."""

    memory_bytes: int
    processes: int = PROCESS_LIMIT
    disk_bytes: int = DISK_LIMIT_BYTES

    @classmethod
    def now(cls) -> "Limits":
        """By the memory that is free at this moment."""
        return cls(max(1 << 30, int(MEMORY_SHARE * free_bytes())))


class Family:
    """The processes of one candidate: its runner, all that descends from it, and the orphans.

    Args:
        leader: the runner's process, which leads a session of its own.
        folders: where the candidate may write.
    """

    _leaders: set[int] = set()  # noqa: RUF012 - one set for the judge: orphans belong to no leader that is alive
    _spared: set[int] | None = None

    def __init__(self, leader: int, folders: Sequence[Path], limits: Limits) -> None:
        self.leader, self.folders, self.limits = leader, folders, limits
        self._leaders.add(leader)

    @classmethod
    def prepare(cls) -> None:
        """Adopt orphans from now on; what the reference itself left outside our session is spared."""
        if cls._spared is None:
            cls._spared = {process.pid for process in _outsiders(processes())}
            adopt_orphans()

    def excess(self) -> Excess | None:
        """What it holds too much of; None when all is well."""
        members, limits = self.members(), self.limits
        held = sum(_private_bytes(pid) for pid in members)
        if held > limits.memory_bytes:
            allowed = f"{limits.memory_bytes / 2**30:.1f} allowed"
            return Excess("out_of_memory_host", f"it held {held / 2**30:.1f} GiB of {allowed}")
        if len(members) > limits.processes:
            return Excess("hack_suspected", f"it ran more than {limits.processes} processes")
        if (written := sum(map(_size, self.folders))) > limits.disk_bytes:
            return Excess("hack_suspected", f"it wrote {written >> 20} MiB of files")
        return None

    def members(self) -> list[int]:
        """Process ids: the runner, its descendants, its session, and orphans that no other runner can own."""
        table = processes()
        roots = {self.leader} | {p.pid for p in table if p.session == self.leader}
        if self._leaders == {self.leader}:
            roots |= {p.pid for p in _outsiders(table)} - (self._spared or set())
        return [pid for pid in _descendants(table, roots) if pid != os.getpid()]

    def end(self) -> None:
        """Kill them all, again until none is left; the runner itself is its owner's to reap."""
        for _ in range(_SWEEPS):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, signal.SIGKILL)
            others = [pid for pid in self.members() if pid != self.leader]
            if not others:
                break
            kill(others)
            _reap(others)
        self._leaders.discard(self.leader)


def adopt_orphans() -> None:
    """Become the parent of whatever process below this one loses its own (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def processes() -> list[Process]:
    """Every process that is not a zombie's remains; empty where there is no ``/proc``."""
    return list(_rows())


def kill(pids: Iterable[int]) -> None:
    """SIGKILL to each that is still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def free_bytes() -> int:
    """Memory to be had without swapping, of the machine or within the control group's limit."""
    free = 4 << 30
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]) * 1024
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        used = int((group / "memory.current").read_text())
        free = min(free, int((group / "memory.max").read_text()) - used)
    return free


def _rows() -> Iterator[Process]:
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = entry.read_text(errors="replace").rpartition(")")[2].split()
            if fields[0] not in "ZX":
                yield Process(int(entry.parent.name), int(fields[_PARENT]), int(fields[_SESSION]))


def _outsiders(table: list[Process]) -> list[Process]:
    """This process's children outside its session: orphans that it adopted, and runners."""
    me, session = os.getpid(), os.getsid(0)
    return [p for p in table if p.parent == me and p.session != session]


def _descendants(table: list[Process], roots: set[int]) -> set[int]:
    alive = {p.pid for p in table}
    found, fresh = roots & alive, roots & alive
    while fresh:
        fresh = {p.pid for p in table if p.parent in fresh} - found
        found |= fresh
    return found


def _private_bytes(pid: int) -> int:
    """Resident memory, without the tensors that it shares with the judge."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        words = Path(f"/proc/{pid}/statm").read_text().split()
        return (int(words[_RESIDENT]) - int(words[_SHARED])) * _PAGE
    return 0


def _reap(pids: Iterable[int]) -> None:
    """Orphans are the judge's own children: nobody else waits for them."""
    for pid in pids:
        deadline = time.monotonic() + _DEATH_S
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
                time.sleep(0.005)


def _size(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(root, name)).st_blocks * 512
    return total
