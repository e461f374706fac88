"""A timing's blocks, and the clocks that must agree about them; on host memory, with a fake driver."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from stitch_tui.tools.worker import contest, cross_check
from stitch_tui.tools.worker.answers import Busy, Done
from stitch_tui.tools.worker.candidate_fault import CandidateFault
from stitch_tui.tools.worker.contest import Contest, Measurement
from stitch_tui.tools.worker.cross_check import LEFT_US, CrossCheck, launch_times, require_joined
from stitch_tui.tools.worker.faults import Fault
from stitch_tui.tools.worker.launch import Launch
from stitch_tui.tools.worker.reference import Options, Reference
from stitch_tui.tools.worker.session import Session
from stitch_tui.tools.worker.task import Task

from . import fake_cuda_runner
from .linear_target import REFERENCE, compiled

QUICK = Measurement(blocks=4, sets=5, cold=True, warmup_s=1000.0, baselines=())
PROGRAM = {"kind": "program"}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("reference")
    (folder / "model.py").write_text(REFERENCE)
    opened = Session()
    opened.task = Task(Reference.open(Options(project=folder, path="model.py")))
    return opened


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU by name; no CUPTI, whatever this machine has."""
    properties = SimpleNamespace(name="a fake GPU", L2_cache_size=4096)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    monkeypatch.setattr(cross_check, "library", lambda: "")


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("honest"))


def launch(library: Path) -> Launch:
    argv = (sys.executable, fake_cuda_runner.__file__, "cuda")
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    return Launch(argv, load=str(library), env=environment, isolate=False)


def measured(session: Session, own: Path, rivals: dict[str, Path], options: Measurement = QUICK) -> Any:
    launches = {name: launch(library) for name, library in rivals.items()}
    found = Contest(session, PROGRAM, launch(own), launches, options, lambda event, data: None)
    try:
        return found.run()
    finally:
        found.close()


def test_candidate_and_rival_have_the_same_blocks_on_so_many_sets(session: Session, honest: Path) -> None:
    report = measured(session, honest, {"again": honest})
    assert report["category"] == "correct"
    assert {name: len(blocks) for name, blocks in report["blocks"].items()} == {"candidate": 4, "again": 4}
    assert {len(block) for blocks in report["blocks"].values() for block in blocks} == {QUICK.sets}
    assert (report["baselines"], report["lower_precision"]) == ([], [])
    environment = report["environment"]
    assert (environment["device"], environment["cache"]) == ("a fake GPU", "cold L2")
    assert (environment["blocks"], environment["rotating_sets"]) == (4, QUICK.sets)
    assert "CUPTI: the library is not installed" in report["unchecked"]


def test_memory_for_sets_is_shared_with_rivals(
    session: Session, honest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contest, "affordable", lambda *_: 5)
    report = measured(session, honest, {"again": honest})
    assert report["environment"]["rotating_sets"] == 2
    assert "2 rotating sets instead of 5: device memory" in report["notes"]


def test_a_rival_that_does_not_load_or_that_crashes_is_left_out_and_nobody_elses_fault(
    session: Session, honest: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"no library")
    report = measured(session, honest, {"broken": broken, "crashing": compiled(tmp_path, "CRASHES")})
    assert (report["category"], list(report["blocks"])) == ("correct", ["candidate"])
    assert [told.partition(":")[0] for told in report["unchecked"][:2]] == [
        "timing beside broken",
        "timing beside crashing",
    ]


def test_a_rival_that_fails_in_the_midst_of_the_blocks_has_none(
    session: Session, honest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bursts = list[str]()
    whole = Contest._rivals_burst

    def tiring(self: Contest, name: str, count: int) -> list[float]:
        bursts.append(name)
        if len(bursts) == 5:
            raise CandidateFault("hang", "no answer")
        return whole(self, name, count)

    monkeypatch.setattr(Contest, "_rivals_burst", tiring)
    report = measured(session, honest, {"before": honest})
    assert len(bursts) == 5
    assert {name: len(blocks) for name, blocks in report["blocks"].items()} == {"candidate": 4}
    assert "timing beside before: no answer" in report["unchecked"]


def test_a_baseline_that_fails_is_a_fault_of_the_environment_and_forgotten(
    session: Session, honest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten = list[Any]()

    class Pool:
        def of(self, *_: Any) -> tuple[dict[str, Any], list[str]]:
            return {"eager": SimpleNamespace(burst=lambda count, cold: done(times_us=[0.0] * count))}, []

        def forget(self, target: Any) -> None:
            forgotten.append(target)

    monkeypatch.setattr(session, "_baselines", Pool())
    with pytest.raises(Fault, match="the baseline eager failed") as raised:
        measured(session, honest, {}, replace(QUICK, baselines=("eager",)))
    assert (raised.value.kind, forgotten) == ("environment", [PROGRAM])


def test_a_candidate_that_crashes_is_at_fault_itself(session: Session, honest: Path, tmp_path: Path) -> None:
    with pytest.raises(CandidateFault):
        measured(session, compiled(tmp_path, "CRASHES"), {"before": honest})


def test_a_result_that_is_wrong_when_timed_is_a_hack(session: Session, tmp_path: Path) -> None:
    with pytest.raises(CandidateFault, match="right when tested, wrong when timed"):
        measured(session, compiled(tmp_path, "DOUBLES"), {})


def done(**changes: Any) -> Done:
    return replace(Done(0, 0, 0.0, 0, 0, 0.0), **changes)


@pytest.mark.parametrize("times", [[1.0], [1.0, 0.0], [1.0, -1.0], [1.0, float("nan")], [1.0, float("inf")]])
def test_a_launch_without_a_time_is_a_fault(times: list[float]) -> None:
    assert launch_times(done(times_us=[1.0, 2.0]), 2) == [1.0, 2.0]
    with pytest.raises(CandidateFault, match="no clock shows"):
        launch_times(done(times_us=times), 2)


def test_work_that_goes_on_after_a_burst_is_a_fault() -> None:
    require_joined(done(event_us=LEFT_US, times_us=[100.0]))
    with pytest.raises(CandidateFault, match="another stream went on for 300 us"):
        require_joined(done(event_us=300.0, times_us=[100.0]))


class Rig:
    """Back-to-back launches that take as long by each clock as is said."""

    def __init__(self, *, event_us: float, wall_us: float, busy_us: float | None, module: bool) -> None:
        self.event_us, self.wall_us, self.busy_us = event_us, wall_us, busy_us
        self.launch = Launch((), module=module)

    def burst(self, count: int, *, cold: bool) -> Done:
        assert not cold
        return done(times_us=[self.event_us] * count, wall_us=500.0 + self.wall_us * count)

    def watch(self, count: int, library: str) -> Done:
        times = [self.event_us] * count
        if self.busy_us is None:
            return done(times_us=times, unwatched="another profiler is at work")
        return done(times_us=times, busy=Busy(self.busy_us * count, count))


CLOCKS = [
    # events, the judge's clock, CUPTI; of a module?; share of busy time, what is left unchecked
    pytest.param(50.0, 50.0, 45.0, False, 0.9, [], id="all agree"),
    pytest.param(50.0, 70.0, 50.0, False, 1.0, [], id="the host is the slower one"),
    pytest.param(50.0, 200.0, 50.0, True, 1.0, [], id="a module's host may be slower still"),
    pytest.param(50.0, 200.0, 50.0, False, 1.0, ["judge's clock"], id="too slow for a library"),
    pytest.param(50.0, 70.0, None, False, None, ["another profiler", "judge's clock"], id="no witness"),
    pytest.param(50.0, 200.0, 190.0, False, None, ["CUPTI shows", "judge's clock"], id="hidden work"),
    pytest.param(50.0, 50.0, 60.0, False, None, ["CUPTI shows"], id="hidden from the host"),
]


@pytest.mark.parametrize(("event_us", "wall_us", "busy_us", "module", "share", "unchecked"), CLOCKS)
def test_event_times_are_held_against_two_other_clocks(
    monkeypatch: pytest.MonkeyPatch,
    event_us: float,
    wall_us: float,
    busy_us: float | None,
    module: bool,
    share: float | None,
    unchecked: list[str],
) -> None:
    monkeypatch.setattr(cross_check, "library", lambda: "libcupti.so")
    rig = Rig(event_us=event_us, wall_us=wall_us, busy_us=busy_us, module=module)
    notes, left = list[str](), list[str]()
    assert CrossCheck(rig, notes, left).busy_share(event_us) == share  # type: ignore[arg-type]
    assert len(left) == len(unchecked)
    assert all(words in told for words, told in zip(unchecked, left, strict=True))
    assert notes[0] == f"back to back: {event_us:.2f} us by events, {wall_us:.2f} us by the judge's clock"
