"""Nsight Systems around one process: collect, import where nsys left that to us, export, read.

Nsight Compute carries an nsys that only collects; what it leaves, a ``.qdstrm``, is made a report by
``QdstrmImporter``, which lies beside it and wants elfutils' ``libdw``.
"""

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools import process
from stitch_tui.tools.profiling.ncu_csv import Unreadable, base_name
from stitch_tui.tools.profiling.spans import Span, Spans

SECONDS = 120.0
"""For each of the three steps."""
_NEEDS = "it needs"
_COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
"""``CUmemcpyKind`` as CUPTI numbers it."""


@dataclass(frozen=True)
class NsysAnswer:
    """What nsys saw; without spans `why` says why not."""

    spans: Spans | None = None
    why: str = ""
    unfit: bool = False
    """It would fail for any process: something of its own is missing."""
    seconds: float = 0.0


async def trace(
    nsys: Path,
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    *,
    timeout: float = SECONDS,
) -> NsysAnswer:
    """What nsys sees of `command` between ``cuProfilerStart`` and ``cuProfilerStop``.

    Never raises for what nsys or the process do.

    Args:
        folder: for its files, which are large.
    """
    report, stream, database = (folder / f"run.{end}" for end in ("nsys-rep", "qdstrm", "sqlite"))
    steps = _Steps(environment, folder, timeout)
    try:
        collect = [
            *(str(nsys), "profile", "--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none"),
            *("--capture-range=cudaProfilerApi", "--capture-range-end=stop"),
            *("--force-overwrite=true", "--output", str(folder / "run"), *command),
        ]
        await steps.run(collect, report, or_else=stream)
        if not report.exists():
            importer = _importer(nsys)
            if importer is None:
                return NsysAnswer(why="this nsys only collects, and there is no QdstrmImporter", unfit=True)
            await steps.run([str(importer), "-i", str(stream), "-o", str(report)], report)
        export = ["export", "--type=sqlite", "--force-overwrite=true", f"--output={database}", str(report)]
        await steps.run([str(nsys), *export], database)
        return NsysAnswer(read_database(database), seconds=steps.seconds)
    except _Unfit as reason:
        return NsysAnswer(why=str(reason), unfit=True, seconds=steps.seconds)
    except Unreadable as reason:
        return NsysAnswer(why=str(reason), seconds=steps.seconds)


class _Unfit(Unreadable):
    """Nsight Systems itself is not whole."""


class _Steps:
    """Processes one after another; each leaves a file."""

    def __init__(self, environment: Mapping[str, str], folder: Path, timeout: float) -> None:
        self._environment, self._folder, self._timeout = environment, folder, timeout
        self.seconds = 0.0

    async def run(self, argv: Sequence[str], made: Path, or_else: Path | None = None) -> None:
        """Run it to its end.

        Raises:
            Unreadable: neither file is there afterwards; the message says why.
        """
        name = Path(argv[0]).name
        try:
            done = await process.run(argv, timeout=self._timeout, env=self._environment, cwd=self._folder)
        except OSError as error:
            raise _Unfit(f"{name} cannot be started: {error.strerror or error}") from error
        self.seconds += done.seconds
        if done.timed_out:
            raise Unreadable(f"{name} took longer than {self._timeout:g} s")
        if not made.exists() and not (or_else and or_else.exists()):
            why = _last(done, f"{name} left no {made.suffix}")
            raise (_Unfit if _NEEDS in why else Unreadable)(why)


def _last(done: process.Finished, what: str) -> str:
    """`what`, with the line that says why, if one does."""
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    library = next((line for line in lines if "cannot open shared object" in line), "")
    if found := re.search(r"(lib[\w.+-]+\.so[.\d]*): cannot open", library):
        package = " (Debian, Ubuntu: apt install libdw1)" if "libdw" in found[1] else ""
        return f"{what}: {_NEEDS} {found[1]}{package}"
    return f"{what}: {lines[-1][:200]}" if lines else what


def _importer(nsys: Path) -> Path | None:
    """``QdstrmImporter`` beside a collecting nsys: ``host/linux-desktop-*`` or ``host-linux-*``."""
    real = nsys.resolve()
    places = [
        real.parent,
        *real.parent.parent.glob("linux-desktop-*"),
        *real.parent.parent.glob("host-linux-*"),
    ]
    return next((place / "QdstrmImporter" for place in places if (place / "QdstrmImporter").exists()), None)


def read_database(path: Path) -> Spans:
    """Kernels with their NVTX ranges, copies and CUDA calls of a report that was exported to SQLite.

    Raises:
        Unreadable: it is no such export.
    """
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            names = dict(database.execute("SELECT id, value FROM StringIds"))
            tables = {
                row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
            ranges = _ranges(database) if {_KERNEL, _RUNTIME, _NVTX} <= tables else {}
            return Spans(
                kernels=list(_kernels(database, names, ranges)) if _KERNEL in tables else [],
                copies=[
                    *(_copies(database) if _MEMCPY in tables else ()),
                    *(_fills(database) if _MEMSET in tables else ()),
                ],
                calls=list(_calls(database, names)) if _RUNTIME in tables else [],
            )
    except (sqlite3.Error, OSError, TypeError, ValueError) as error:
        raise Unreadable(f"nsys's export cannot be read: {error}") from error


_KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
_MEMCPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
_MEMSET = "CUPTI_ACTIVITY_KIND_MEMSET"
_RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
_NVTX = "NVTX_EVENTS"
_ENDED = "WHERE end >= start"
"""What was cut off has no end."""
_PUSHED = 59
"""``eventType`` of a range that was pushed and popped on one thread."""


def _ranges(database: sqlite3.Connection) -> dict[int, str]:
    """The innermost NVTX range around each launch, by the launch's correlation."""
    found = database.execute(
        f"SELECT call.correlationId, coalesce(range.text, name.value) FROM {_RUNTIME} AS call"
        f" JOIN {_NVTX} AS range ON range.globalTid = call.globalTid"
        " AND range.start <= call.start AND call.end <= range.end"
        " LEFT JOIN StringIds AS name ON name.id = range.textId"
        f" WHERE range.eventType = {_PUSHED} AND call.correlationId IN (SELECT correlationId FROM {_KERNEL})"
        " ORDER BY range.start"
    )
    return {correlation: name for correlation, name in found if name}


def _kernels(
    database: sqlite3.Connection, names: Mapping[int, str], ranges: Mapping[int, str]
) -> Iterator[Span]:
    columns = "start, end, demangledName, gridX * gridY * gridZ, blockX * blockY * blockZ, correlationId"
    for start, end, name, blocks, threads, call in database.execute(
        f"SELECT {columns} FROM {_KERNEL} {_ENDED}"
    ):
        kernel = base_name(names.get(name, "?"))
        yield Span(
            kernel, float(start), float(end), blocks=blocks, threads=threads, range=ranges.get(call, "")
        )


def _copies(database: sqlite3.Connection) -> Iterator[Span]:
    columns = "start, end, copyKind, bytes"
    for start, end, kind, nbytes in database.execute(f"SELECT {columns} FROM {_MEMCPY} {_ENDED}"):
        yield Span(_COPIES.get(kind, f"kind {kind}"), float(start), float(end), nbytes=int(nbytes))


def _fills(database: sqlite3.Connection) -> Iterator[Span]:
    for start, end, nbytes in database.execute(f"SELECT start, end, bytes FROM {_MEMSET} {_ENDED}"):
        yield Span("fill", float(start), float(end), nbytes=int(nbytes))


def _calls(database: sqlite3.Connection, names: Mapping[int, str]) -> Iterator[Span]:
    for start, end, name in database.execute(f"SELECT start, end, nameId FROM {_RUNTIME} {_ENDED}"):
        yield Span(re.sub(r"_v\d+$", "", names.get(name, "?")), float(start), float(end))
