"""Traces, nsys's and CUPTI's, as a system profile; and which profiler is asked because of it."""

import asyncio
import json
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from stitch_tui.tools.profiling.choice import choose
from stitch_tui.tools.profiling.chrome_trace import read_trace
from stitch_tui.tools.profiling.ncu_csv import Unreadable
from stitch_tui.tools.profiling.nsys import trace
from stitch_tui.tools.profiling.nsys_database import read_database
from stitch_tui.tools.profiling.nsys_stats import read_stats
from stitch_tui.tools.profiling.profile import Evidence
from stitch_tui.tools.profiling.spans import Span, Spans, system_of
from stitch_tui.tools.profiling.summary import system_line

KERNELS = [
    ("void f<(int)4>(float*)", 1000, 4000),
    ("void f<(int)4>(float*)", 5000, 8000),
    ("g(int)", 7000, 9000),
]
"""Name, start and end in nanoseconds: f twice with a pause of 1 us, g partly beside it."""
CALLS = [
    ("cudaLaunchKernel_v7000", 0, 500),
    ("cudaLaunchKernel_v7000", 600, 1100),
    ("cudaDeviceSynchronize", 1100, 10000),
]
RECORDED = Path(__file__).parent / "recorded"
"""On an H200 by nsys 2025.3.1: five runs of a kernel, the tables that are read."""
FAKE = """#!{python}
import pathlib, shutil, sys
arguments = sys.argv[1:]
{body}
"""


def database(path: Path) -> Path:
    """What ``nsys export --type=sqlite`` writes, as far as it is read."""
    names = {name: number for number, (name, *_) in enumerate([*KERNELS, *CALLS])}
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        made.executemany("INSERT INTO StringIds VALUES (?, ?)", [(at, name) for name, at in names.items()])
        made.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, demangledName INT, gridX INT,"
            " gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT, correlationId INT)"
        )
        made.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, 4, 2, 1, 128, 1, 1, ?)",
            [(start, end, names[name], at) for at, (name, start, end) in enumerate(KERNELS)],
        )
        made.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME"
            " (start INT, end INT, nameId INT, globalTid INT, correlationId INT)"
        )
        made.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, 7, ?)",
            [(start, end, names[name], at) for at, (name, start, end) in enumerate(CALLS)],
        )
        made.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, copyKind INT, bytes INT)")
        made.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (9500, 9700, 1, 64)")
        made.commit()
    return path


def chrome(path: Path) -> Path:
    """The same as torch's profiler writes it, in microseconds."""

    def event(cat: str, name: str, start: int, end: int, **args: object) -> dict[str, object]:
        return {
            "ph": "X",
            "cat": cat,
            "name": name,
            "ts": start / 1e3,
            "dur": (end - start) / 1e3,
            "args": args,
        }

    events = [event("kernel", name, s, e, grid=[4, 2, 1], block=[128, 1, 1]) for name, s, e in KERNELS]
    events += [event("cuda_runtime", name.partition("_")[0], s, e) for name, s, e in CALLS]
    events.append(event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 9500, 9700, bytes=64))
    events.append({"ph": "M", "name": "process_name"})  # type: ignore[list-item]
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def stats() -> tuple[str, str]:
    """The same as ``nsys stats`` prints it: what the device did, and CUDA's calls."""
    device = [f'{start},{end - start},1,4,2,1,128,1,1,,"{name}"' for name, start, end in KERNELS]
    device.append('9500,200,9,,,,,,,0.000064,"[CUDA memcpy Host-to-Device]"')
    calls = [f"{start},{end - start},{name},0,1,7,7,20," for name, start, end in CALLS]
    titles = "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Bytes (MB),Name"
    more = "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name"
    return "\n".join([titles, *device]), "\n".join([more, *calls])


SOURCES: dict[str, Callable[[Path], Spans]] = {
    "nsys": lambda folder: read_database(database(folder / "run.sqlite")),
    "nsys stats": lambda _: read_stats(*stats()),
    "cupti": lambda folder: read_trace(chrome(folder / "t.json")),
}


@pytest.mark.parametrize("source", SOURCES)
def test_all_traces_tell_the_same_times(tmp_path: Path, source: str) -> None:
    system = system_of(SOURCES[source](tmp_path), runs=1)
    assert system.wall_us == 9.7
    assert system.busy_us == pytest.approx(3 + 4 + 0.2)
    assert (system.gaps, system.gap_us, system.longest_gap_us) == (2, 1.5, 1.0)
    assert (system.launches, system.launch_us) == (3, 1.0)
    assert [(k.kernel, k.launches, k.time_us, k.blocks, k.threads) for k in system.kernels] == [
        ("f<(int)4>", 2, 6.0, 8, 128),
        ("g", 1, 2.0, 8, 128),
    ]
    assert [(c.kind, c.nbytes) for c in system.copies] == [("HtoD", 64)]
    assert "busy 74%" in system_line(system, Evidence.NSYS)


def test_kernels_belong_to_the_innermost_range_that_launched_them(tmp_path: Path) -> None:
    path = database(tmp_path / "run.sqlite")
    with closing(sqlite3.connect(path)) as made:
        made.execute(
            "CREATE TABLE NVTX_EVENTS"
            " (start INT, end INT, eventType INT, text TEXT, textId INT, globalTid INT)"
        )
        made.execute("INSERT INTO StringIds VALUES (99, 's02')")
        made.executemany(
            "INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?)",
            [
                (0, 5000, 59, "whole", None, 7),
                (0, 550, 59, "s01", None, 7),
                (550, 1200, 59, None, 99, 7),
                (0, 5000, 59, "elsewhere", None, 8),
                (500, None, 34, "a mark", None, 7),
            ],
        )
        made.commit()
    system = system_of(read_database(path), runs=1)
    assert [(r.name, r.launches, r.time_us) for r in system.ranges] == [("s01", 1, 3.0), ("s02", 1, 3.0)]
    assert system.launches == 3  # what the last call did belongs to no range


def test_a_recorded_export_of_nsys_is_read(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as made:
        made.executescript((RECORDED / "nsys.sql").read_text())
    system = system_of(read_database(tmp_path / "run.sqlite"), runs=5)
    (kernel,) = system.kernels
    assert (kernel.kernel, kernel.launches, kernel.blocks, kernel.threads) == ("scaled", 1, 65536, 256)
    assert kernel.time_us == pytest.approx(126.77, abs=0.01)
    assert system.launches == 1
    assert 0.9 < system.busy_share < 1
    assert system.calls[1].call == "cudaLaunchKernel"


def test_a_trace_of_several_runs_is_told_for_one() -> None:
    spans = Spans(kernels=[Span("f", 10e3 * run, 10e3 * run + 8e3) for run in range(4)])
    system = system_of(spans, runs=4)
    assert (system.launches, system.busy_us, system.wall_us) == (1, 8.0, 9.5)


def test_a_trace_without_kernels_says_so() -> None:
    with pytest.raises(ValueError, match="no kernel"):
        system_of(Spans(calls=[Span("cudaMalloc", 0, 5)]), runs=1)


@pytest.mark.parametrize("content", [b"", b"{", b'{"traceEvents": [1]}', b"SQLite format 3\0garbage"])
def test_garbage_is_refused_with_a_reason(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "garbage"
    path.write_bytes(content)
    with pytest.raises(Unreadable):
        read_trace(path)
    with pytest.raises(Unreadable):
        read_database(path)


def fake(folder: Path, body: str) -> Path:
    """A program in nsys's place."""
    path = folder / "nsys"
    path.write_text(FAKE.format(python=sys.executable, body=body))
    path.chmod(0o755)
    return path


def test_a_collecting_nsys_is_followed_by_the_importer_beside_it(tmp_path: Path) -> None:
    made = database(tmp_path / "made.sqlite")
    nsys = fake(
        tmp_path,
        f"""
if arguments[0] == "profile":
    pathlib.Path(arguments[arguments.index("--output") + 1] + ".qdstrm").write_text("stream")
else:
    shutil.copy({str(made)!r}, next(a for a in arguments if a.startswith("--output=")).partition("=")[2])
""",
    )
    importer = tmp_path / "QdstrmImporter"
    importer.write_text('#!/bin/sh\\ncp "$2" "$4"\\n'.replace("\\n", "\n"))
    importer.chmod(0o755)
    folder = tmp_path / "out"
    folder.mkdir()
    answer = asyncio.run(trace(nsys, ["true"], dict(os.environ), folder))
    assert answer.why == ""
    assert answer.spans is not None
    assert len(answer.spans.kernels) == 3


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("sys.exit('libdw.so.1: cannot open shared object file: none')", "it needs libdw.so.1 (Debian"),
        ("import time; time.sleep(60)", "took longer than"),
        ("pathlib.Path(arguments[arguments.index('--output') + 1] + '.qdstrm').touch()", "no QdstrmImporter"),
        ("pass", "nsys left no .nsys-rep"),
        ("""
if arguments[0] == "profile": pathlib.Path(arguments[arguments.index('--output') + 1] + '.nsys-rep').touch()
else: pathlib.Path(arguments[-2].partition("=")[2]).write_text("no database")
""", "cannot be read"),
    ],
)  # fmt: skip
def test_an_nsys_that_does_not_work_says_why(tmp_path: Path, body: str, reason: str) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    seconds = 1 if "sleep" in body else 60
    answer = asyncio.run(trace(fake(tmp_path, body), ["true"], dict(os.environ), folder, timeout=seconds))
    assert answer.spans is None
    assert reason in answer.why


def test_ncu_is_asked_about_the_kernels_that_take_the_time() -> None:
    kernels = [Span("long", 0, 90e3), Span("short", 90e3, 95e3), Span("middle", 95e3, 110e3)]
    choice = choose(system_of(Spans(kernels=kernels), runs=1))
    assert (choice.ask, choice.kernels) == (True, ("long", "middle"))
    assert "2 of 3 kernels" in choice.reason


def test_ncu_is_not_asked_where_the_device_waits_for_the_host() -> None:
    spans = Spans(kernels=[Span("f", 90e3, 100e3)], calls=[Span("cudaLaunchKernel", 0, 5e3)])
    choice = choose(system_of(spans, runs=1))
    assert not choice.ask
    assert "busy 10%" in choice.reason
    assert choose(None).ask
