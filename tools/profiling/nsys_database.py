"""A report of Nsight Systems that was exported to SQLite, as spans."""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from stitch_tui.tools.profiling.ncu_csv import Unreadable, base_name
from stitch_tui.tools.profiling.spans import Span, Spans

_COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
"""``CUmemcpyKind`` as CUPTI numbers it."""


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
    except (sqlite3.Error, ArithmeticError, OSError, TypeError, ValueError) as error:
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
