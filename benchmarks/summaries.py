"""What nsys and ncu themselves sum a report up to, read without any of stitch's readers."""

import csv
import io
import re
import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools import process

SECONDS = 60.0
REPORTS = {
    "kernels": ("cuda_gpu_kern_sum", "Instances", ("CUPTI_ACTIVITY_KIND_KERNEL",)),
    "calls": ("cuda_api_sum", "Num Calls", ("CUPTI_ACTIVITY_KIND_RUNTIME",)),
    "copies": (
        "cuda_gpu_mem_time_sum",
        "Count",
        ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"),
    ),
}
"""What is summed up: nsys's report, its column of counts, and the tables of an export that it reads."""
_SCALES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_UNITS = ("second", "s", "byte", "cycle", "inst", "sector", "thread", "block", "warp")


@dataclass(frozen=True)
class Sum:
    """All rows of one report of nsys."""

    us: float
    count: int


@dataclass(frozen=True)
class Summary:
    """A trace as nsys sums it up."""

    by: str
    """``nsys stats``; where that copy of nsys has none, SQL on its export, and why."""
    sums: dict[str, Sum]


async def of_nsys(nsys: Path, database: Path) -> Summary:
    """Time and count of all kernels, CUDA calls and copies of an export."""
    sums = {}
    for name, (report, count, _) in REPORTS.items():
        argv = [str(nsys), "stats", "--report", report, "--format", "csv", "--quiet", str(database)]
        done = await process.run(argv, timeout=SECONDS)
        found = stats_sum(done.stdout, count)
        if found is None:
            last = (done.stderr + done.stdout).strip().splitlines()[-1:] or ["it printed nothing"]
            return Summary(f"SQL on nsys's export, as nsys stats says: {last[0][:200]}", by_sql(database))
        sums[name] = found
    return Summary("nsys stats", sums)


def stats_sum(text: str, count: str) -> Sum | None:
    """The rows of one CSV report together; None where there is no report in `text`."""
    if "SKIPPED" in text:
        return Sum(0.0, 0)
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith("Time (%)")), None)
    if start is None:
        return None
    rows = [row for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))) if row.get(count)]
    return Sum(sum(float(row["Total Time (ns)"]) for row in rows) / 1e3, sum(int(row[count]) for row in rows))


def by_sql(database: Path) -> dict[str, Sum]:
    """The same sums straight from the export's tables."""
    sums = {}
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as opened:
        there = {name for (name,) in opened.execute("SELECT name FROM sqlite_master")}
        for name, (_, _, tables) in REPORTS.items():
            asked = [table for table in tables if table in there]
            rows = [opened.execute(f"SELECT count(*), sum(end - start) FROM {t}").fetchone() for t in asked]
            sums[name] = Sum(sum(row[1] or 0 for row in rows) / 1e3, sum(row[0] for row in rows))
    return sums


async def of_ncu(ncu: Path, report: Path) -> dict[str, dict[str, float]]:
    """Each metric's average over a kernel's launches in base units, by kernel as ncu prints it.

    ncu prints its summary in units of its own choice (``us``, ``Mbyte``), which are not those that
    `tools.profiling.ncu` reads.

    Raises:
        LookupError: ncu printed no such table; the message is its last line.
    """
    argv = [str(ncu), "--import", str(report), "--csv", "--page", "details"]
    for more in (["--print-summary", "per-kernel"], []):
        done = await process.run([*argv, *more], timeout=SECONDS)
        if found := averages(done.stdout):
            return found
    raise LookupError(((done.stderr + done.stdout).strip().splitlines() or ["ncu printed nothing"])[-1])


def averages(text: str) -> dict[str, dict[str, float]]:
    """The table of ncu's details page, one metric a line; empty where `text` holds none."""
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if '"Metric Name"' in line), None)
    if start is None:
        return {}
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))):
        cell = (row.get("Average") or row.get("Metric Value") or "").replace(",", "")
        if re.fullmatch(r"-?\d+(\.\d+)?([eE][-+]?\d+)?", cell):
            metric = row["Metric Name"]
            values[row["Kernel Name"]][metric].append(float(cell) * scale(row["Metric Unit"] or ""))
    return {
        kernel: {metric: sum(numbers) / len(numbers) for metric, numbers in metrics.items()}
        for kernel, metrics in values.items()
    }


def scale(unit: str) -> float:
    """What a number in `unit` is multiplied by: ``us`` and ``usecond`` 1e-6, ``Mbyte`` 1e6."""
    prefix = unit[:1]
    return _SCALES[prefix] if prefix in _SCALES and unit[1:].split("/")[0] in _UNITS else 1.0
