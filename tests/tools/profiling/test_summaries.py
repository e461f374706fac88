"""The profilers' own summaries, which ``benchmarks/profiles.py`` holds our readings against."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.summaries import Sum, averages, of_ncu, of_nsys, scale, stats_sum
from stitch_tui.tools.profiling.nsys_database import read_database
from tests.tools.profiling.fake_tools import program

RECORDED = Path(__file__).parent / "recorded"
STATS = """Processing [run.sqlite] with [cuda_gpu_kern_sum.py]...

Time (%),Total Time (ns),Instances,Num Calls,Count,Name
62.5,20000,4,4,4,"void f<int, (bool)1>(int, float *)"
37.5,12000,6,6,6,g(float *)
"""
DETAILS = """==PROF== Disconnected
"Kernel Name","Invocations","Metric Name","Metric Unit","Minimum","Maximum","Average"
"void f<4>(int)","2","gpu__time_duration.sum","us","120.00","130.00","125.00"
"void f<4>(int)","2","dram__bytes.sum","Mbyte","1,000.00","1,250.00","1,125.00"
"g(int)","1","sm__throughput.avg.pct_of_peak_sustained_elapsed","%","7.50","7.50","7.50"
"g(int)","1","dram__throughput.avg.pct_of_peak_sustained_elapsed","%","n/a","n/a","n/a"
"""


def database(folder: Path) -> Path:
    """Recorded on an H200."""
    path = folder / "run.sqlite"
    with closing(sqlite3.connect(path)) as made:
        made.executescript((RECORDED / "nsys.sql").read_text())
    return path


def test_reports_of_nsys_stats_are_summed_up(tmp_path: Path) -> None:
    assert stats_sum(STATS, "Instances") == Sum(us=32.0, count=10)
    assert stats_sum("SKIPPED: run.sqlite does not contain GPU memory data.", "Count") == Sum(0.0, 0)
    assert stats_sum("no report", "Count") is None
    answer = asyncio.run(of_nsys(program(tmp_path, "nsys", f"print({STATS!r})"), database(tmp_path)))
    assert answer.by == "nsys stats"
    assert set(answer.sums.values()) == {Sum(us=32.0, count=10)}


def test_an_nsys_without_stats_is_summed_up_by_sql_as_we_read_it(tmp_path: Path) -> None:
    nsys = program(tmp_path, "nsys", "sys.exit('stats: unknown command')")
    answer = asyncio.run(of_nsys(nsys, database(tmp_path)))
    assert answer.by == "SQL on nsys's export, as nsys stats says: stats: unknown command"
    spans = read_database(tmp_path / "run.sqlite")
    assert answer.sums["kernels"].count == len(spans.kernels) == 5
    assert answer.sums["calls"].us == pytest.approx(sum(call.us for call in spans.calls))


def test_ncu_s_own_units_are_taken_into_its_averages(tmp_path: Path) -> None:
    found = averages(DETAILS)
    assert found["void f<4>(int)"]["gpu__time_duration.sum"] == pytest.approx(125e-6)
    assert found["void f<4>(int)"]["dram__bytes.sum"] == pytest.approx(1.125e9)
    assert list(found["g(int)"].values()) == [7.5]
    assert averages("==ERROR== no report") == {}
    ncu = program(tmp_path, "ncu", f"print({DETAILS!r} if '--print-summary' not in arguments else '')")
    assert asyncio.run(of_ncu(ncu, tmp_path / "a.ncu-rep")) == found
    with pytest.raises(LookupError, match="no such file"):
        asyncio.run(of_ncu(program(tmp_path, "ncu", "sys.exit('no such file')"), tmp_path / "a.ncu-rep"))


@pytest.mark.parametrize(
    ("unit", "factor"),
    [("ns", 1e-9), ("usecond", 1e-6), ("ms", 1e-3), ("s", 1), ("Kbyte", 1e3), ("Gbyte/s", 1e9), ("byte", 1),
     ("%", 1), ("register/thread", 1), ("", 1)],
)  # fmt: skip
def test_a_unit_s_prefix_is_a_factor_only_before_a_unit(unit: str, factor: float) -> None:
    assert scale(unit) == factor
