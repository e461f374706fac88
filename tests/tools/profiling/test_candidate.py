"""A candidate's profile from trace to counters, with programs in the profilers' places."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from stitch_tui.tools.bench import Bench, Cuda
from stitch_tui.tools.errors import ReferenceFault
from stitch_tui.tools.profiling import candidate, system
from stitch_tui.tools.profiling.profile import Evidence, Profile
from stitch_tui.tools.solo import Solo
from stitch_tui.tools.toolkit import Toolkit
from stitch_tui.tools.verdict import Build
from tests.tools.profiling.fake_tools import NCU, NSYS, NoJudge, program

RECORDED = Path(__file__).parents[2] / "agents" / "recorded" / "profiles"
SLOWER_HOST = "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = end - 900"
"""As if the recorded kernels took 0.9 us each: the device then waits for the host."""


Said = list[str]


def profiled(folder: Path, *, host: str = "", nsys: bool = True, ncu: bool = True) -> tuple[Profile, Said]:
    sql = Path(__file__).parent / "recorded" / "nsys.sql"
    toolkit = Toolkit(
        nsys=program(folder, "nsys", NSYS.format(sql=str(sql), more=host)) if nsys else None,
        ncu=program(folder, "ncu", NCU.format(table=str(RECORDED / "healthy.csv"))) if ncu else None,
    )
    cuda = Cuda("NVIDIA H200", "sm_90", toolkit, folder / "builds", profiles=folder / "profiles")
    source = folder / "mine.cu"
    source.write_text("y[i] = 2 * x[i];")
    build = Build(ok=True, device="cuda", artifact=str(folder / "none.so"), artifact_sha256="a" * 64)
    bench = Bench(NoJudge(), None, python=sys.executable, cuda=cuda)
    said: Said = []

    def heard(_: str, data: dict[str, Any]) -> None:
        said.append(f"{data['tool']}: {data['reason']}")

    profile = asyncio.run(candidate.profiled(bench, {}, source, build, on_event=heard))
    assert profile is not None
    return profile, said


@pytest.fixture(autouse=True)
def _as_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "RUNS", 5)


def test_counters_are_read_of_the_kernels_that_the_trace_shows(tmp_path: Path) -> None:
    profile, said = profiled(tmp_path)
    assert (profile.evidence, profile.system_evidence) == (Evidence.NCU, Evidence.NSYS)
    assert profile.tool == "ncu 2025.3.1"
    assert [kernel.kernel for kernel in profile.kernels] == ["scaled"]
    assert profile.system is not None
    assert profile.system.launches == 1
    assert "--kernel-name regex:^(scaled)$" in Path(profile.report).read_text()
    assert said == ["nsys: the system first", "ncu: the one kernel with 100% of the device's time"]


def test_no_counters_are_read_where_the_device_waits_for_the_host(tmp_path: Path) -> None:
    profile, said = profiled(tmp_path, host=SLOWER_HOST)
    assert (profile.evidence, profile.kernels, profile.report) == (Evidence.NSYS, (), "")
    assert "kernels are not the limit" in profile.why
    assert said[1].startswith("none: the device is busy")


def test_what_is_missing_is_said_and_the_rest_is_used(tmp_path: Path) -> None:
    without_ncu, _ = profiled(tmp_path, ncu=False)
    assert (without_ncu.evidence, without_ncu.why) == (Evidence.NSYS, "ncu is not installed")
    without_trace, _ = profiled(tmp_path, nsys=False)  # torch's profiler finds no GPU here either
    assert (without_trace.evidence, without_trace.system) == (Evidence.NCU, None)
    assert "nsys is not installed; torch's profiler:" in without_trace.why
    assert "--kernel-name" not in Path(without_trace.report).read_text()


@pytest.mark.parametrize(("said", "tries"), [("libdw.so.1: cannot open shared object file", 1), ("", 2)])
def test_an_nsys_that_lacks_something_is_not_tried_for_each_candidate(
    tmp_path: Path, said: str, tries: int
) -> None:
    log = tmp_path / "tries"
    body = f"pathlib.Path({str(log)!r}).open('a').write('x'); sys.exit({said!r})"
    broken = program(tmp_path, "broken-nsys", body)
    bench = Bench(NoJudge(), None, cuda=Cuda("NVIDIA H200", "sm_90", Toolkit(nsys=broken), tmp_path))
    alone = Solo(sys.executable, tmp_path, tmp_path / "none.so", {})
    first, second = (asyncio.run(system.of_candidate(bench, alone, 0.0)) for _ in range(2))
    assert "nsys left no .nsys-rep" in first.why
    assert first.why == second.why
    assert len(log.read_text()) == tries


def test_a_judge_that_draws_no_inputs_costs_the_profile_alone(tmp_path: Path) -> None:
    class Full(NoJudge):
        async def call(self, method: str, params: Any = None, **more: Any) -> Any:
            raise ReferenceFault("the reference is too large for memory")

    cuda = Cuda("NVIDIA H200", "sm_90", Toolkit(), tmp_path, profiles=tmp_path)
    build = Build(ok=True, device="cuda", artifact="none.so")
    profile = asyncio.run(candidate.profiled(Bench(Full(), None, cuda=cuda), {}, tmp_path, build))
    assert profile is not None
    assert profile.evidence is Evidence.NONE
    assert "too large for memory" in profile.why


def test_a_long_run_is_traced_fewer_times_or_not_at_all() -> None:
    assert [system.runs_of(seconds) for seconds in (0.0, 1.0, 4.0, 11.0)] == [5, 5, 2, 0]


def test_the_oldest_reports_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate, "REPORTS", 2)
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.ncu-rep").touch()
    candidate._reports(tmp_path)
    assert len(list(tmp_path.glob("*.ncu-rep"))) == 1


def test_by_the_users_wish_nothing_is_profiled(tmp_path: Path) -> None:
    cuda = Cuda("NVIDIA H200", "sm_90", Toolkit(), tmp_path)
    for bench in (Bench(NoJudge(), None, cuda=cuda), Bench(NoJudge(), None)):
        build = Build(ok=True, device="cuda")
        assert asyncio.run(candidate.profiled(bench, {}, tmp_path / "mine.cu", build)) is None
