"""ncu's tables: recorded on an H200, read back by unit; and the process around it."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from stitch_tui.tools.profiling.metrics import FIELDS, Question, metrics, questions
from stitch_tui.tools.profiling.ncu import NcuAnswer, measure
from stitch_tui.tools.profiling.ncu_csv import Unreadable, base_name, launches, profiles
from stitch_tui.tools.profiling.profile import Evidence, Profile
from stitch_tui.tools.profiling.summary import lines
from stitch_tui.tools.solo import UNSUPPORTED_EXIT, Solo
from stitch_tui.tools.verdict import KernelFacts

RECORDED = Path(__file__).parents[2] / "agents" / "recorded" / "profiles"
TIME = "gpu__time_duration.sum"
MEMORY = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
FAKE = """#!{python}
import pathlib, sys
arguments = sys.argv[1:]
report = None
if "--export" in arguments: report = pathlib.Path(arguments[arguments.index("--export") + 1] + ".ncu-rep")
asked = arguments[arguments.index("--metrics") + 1].split(",") if report else []
if "--version" in arguments:
    sys.exit(print("Version 2025.3.1.0 (build 1)"))
{body}
"""
GOOD = f"""
if report: report.write_text("a report")
else: print(pathlib.Path({str(RECORDED / "healthy.csv")!r}).read_text())
"""


def table(*rows: str, metric: str = TIME, unit: str = "ns") -> str:
    return "\n".join([f'"ID","Kernel Name","{metric}"', f'"","","{unit}"', *rows]) + "\n"


def test_a_recorded_table_becomes_a_kernel_with_its_numbers() -> None:
    (kernel,), notes = profiles(launches((RECORDED / "bank_conflicts.csv").read_text()))
    assert notes == ()
    assert (kernel.kernel, kernel.launches) == ("transposed", 1)
    assert (kernel.blocks, kernel.threads, kernel.registers, kernel.shared_bytes) == (65536, 256, 30, 4096)
    assert kernel.time_us == pytest.approx(333.760)
    assert kernel.dram_bytes == 516894464
    assert kernel.store_conflicts == 65287945
    assert kernel.multiprocessors == 132
    assert kernel.limiter == "registers"
    assert kernel.stall[0] == "long_scoreboard"
    assert len(kernel.stalls) == 19


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.csv")), ids=lambda path: path.stem)
def test_every_field_that_is_always_asked_for_is_in_a_recorded_table(path: Path) -> None:
    (kernel,), notes = profiles(launches(path.read_text()))
    told = kernel.model_dump()
    later = (Question.TRAFFIC, Question.SHARED, Question.LOCAL)  # the first was not asked for then
    asked = [question for question in Question if question not in later]
    fields = {field.partition(".")[0] for question in asked for field in FIELDS[question]}
    assert notes == ()
    assert {field for field in fields if told[field] is None} == set()
    assert lines(Profile(evidence=Evidence.NCU, why="", kernels=(kernel,)))[0].startswith(kernel.kernel)


@pytest.mark.parametrize(
    ("unit", "time_us"), [("ns", 1.5), ("nsecond", 1.5), ("us", 1500), ("msecond", 1.5e6), ("second", 1.5e9)]
)
def test_times_are_read_by_their_unit(unit: str, time_us: float) -> None:
    (launch,) = launches(table('"0","f(int)","1,500"', unit=unit))
    assert launch.values[TIME] == pytest.approx(time_us)


def test_prefixes_are_taken_into_the_number_and_percents_stay() -> None:
    assert launches(table('"0","f","1.5"', metric="dram__bytes.sum", unit="Mbyte"))[0].values == {
        "dram__bytes.sum": 1.5e6
    }
    assert launches(table('"0","f","38.2"', metric=MEMORY, unit="%"))[0].values == {MEMORY: 38.2}


def test_lines_around_a_table_and_a_row_that_was_cut_off_are_passed_over() -> None:
    text = "==WARNING== something\nthe program's own words\n" + table(
        '"0","f","10"', '"1","g","20"', '"2","h'
    )
    assert [launch.kernel for launch in launches(text)] == ["f", "g"]


@pytest.mark.parametrize("text", ["", "==ERROR== no", '"ID","Kernel Name"', table(), "Killed\n"])
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        launches(text)


def test_launches_of_a_kernel_are_summed_and_weighted_by_time() -> None:
    header = f'"ID","Kernel Name","{TIME}","{MEMORY}","launch__grid_size"\n"","","ns","%",""\n'
    rows = '"0","f(int)","1000","10","1"\n"1","f(int)","3000","50","8"\n"2","g(int)","9000","n/a","2"\n'
    (g, f), _ = profiles(launches(header + rows))
    assert (g.kernel, g.dram_percent) == ("g", None)
    assert (f.launches, f.time_us, f.dram_percent, f.blocks) == (2, 4.0, 40.0, 8)


def test_a_percentage_that_cannot_be_is_left_out_and_said() -> None:
    (kernel,), notes = profiles(launches(table('"0","f","1234.5"', metric=MEMORY, unit="%")))
    assert kernel.dram_percent is None
    assert "not believed" in notes[0]


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("scaled(const float *, long)", "scaled"),
        ("void f<(int)4, float>(float *)", "f<(int)4, float>"),
        ("void at::(anonymous namespace)::g<(bool)1>(int)", "at::(anonymous namespace)::g<(bool)1>"),
        ("sm80_xmma_gemm_f32", "sm80_xmma_gemm_f32"),
    ],
)
def test_a_kernel_is_named_without_its_arguments(name: str, base: str) -> None:
    assert base_name(name) == base


def test_only_what_can_be_is_asked() -> None:
    plain = questions("y[i] = x[i];", [KernelFacts(kernel="f")])
    assert Question.SHARED not in plain
    assert Question.LOCAL not in plain
    assert {Question.SHARED, Question.LOCAL} < set(questions("__shared__ float t[32];", []))
    assert Question.LOCAL in questions("", [KernelFacts(kernel="f", spill_bytes=8)])
    assert len(set(metrics(tuple(Question)))) == len(metrics(tuple(Question)))


def answered(folder: Path, body: str, **more: object) -> NcuAnswer:
    ncu = folder / "ncu"
    ncu.write_text(FAKE.format(python=sys.executable, body=body))
    ncu.chmod(0o755)
    alone = Solo(sys.executable, folder, folder / "candidate.so", dict(os.environ))
    report = folder / "kept" / "one.ncu-rep"
    return asyncio.run(measure(ncu, alone, [Question.LIMITS], report, **more))  # type: ignore[arg-type]


def test_a_run_gives_kernels_and_keeps_the_report(tmp_path: Path) -> None:
    answer = answered(tmp_path, GOOD)
    assert (answer.why, answer.tool) == ("", "ncu 2025.3.1")
    assert [kernel.kernel for kernel in answer.kernels] == ["scaled"]
    assert (tmp_path / "kept" / "one.ncu-rep").read_text() == "a report"


def test_a_metric_that_this_version_does_not_know_is_left_out(tmp_path: Path) -> None:
    body = f"""
if "{TIME}" in asked: sys.exit(print("==ERROR== Failed to find metric {TIME}"))
{GOOD}"""
    answer = answered(tmp_path, body)
    assert answer.kernels
    assert answer.notes == (f"this ncu does not know {TIME}",)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("sys.exit('==ERROR== ERR_NVGPUCTRPERM - no permission')", "NVreg_RestrictProfilingToAdminUsers=0"),
        (
            "sys.exit('==ERROR== Failed to initialize the profiler: LibraryNotLoaded')",
            "cannot load the driver",
        ),
        ("print('==WARNING== No kernels were profiled.')", "launched no kernel"),
        (f"sys.exit({UNSUPPORTED_EXIT})", "does not support the full size"),
        ("sys.exit('==ERROR== Something new')", "status 1 and no report: Something new"),
        ("import time; time.sleep(60)", "took longer than"),
        ("if report: report.touch()", "ncu printed no table: nothing"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "ncu ended with status -9"),
    ],
)
def test_an_ncu_that_does_not_work_says_why(tmp_path: Path, body: str, reason: str) -> None:
    answer = answered(tmp_path, body, timeout=1 if "sleep" in body else 60)
    assert answer.kernels == ()
    assert reason in answer.why


def test_kernels_are_asked_for_by_their_functions_and_all_of_them_if_that_finds_none(tmp_path: Path) -> None:
    body = f"""
if "--kernel-name" in arguments:
    pathlib.Path({str(tmp_path / "asked")!r}).write_text(arguments[arguments.index("--kernel-name") + 1])
    sys.exit(print("==WARNING== No kernels were profiled."))
{GOOD}"""
    answer = answered(
        tmp_path, body, kernels=["a::(anonymous namespace)::rows<(int)4>", "rows<(int)8>", "sums"]
    )
    assert (tmp_path / "asked").read_text() == "regex:^(rows|sums)$"
    assert [kernel.kernel for kernel in answer.kernels] == ["scaled"]


def test_an_ncu_that_is_not_there_says_so(tmp_path: Path) -> None:
    alone = Solo(sys.executable, tmp_path, tmp_path / "candidate.so", {})
    answer = asyncio.run(measure(tmp_path / "none", alone, [Question.LIMITS], tmp_path / "r.ncu-rep"))
    assert "cannot be started" in answer.why
