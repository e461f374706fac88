"""A race: an order of contestants, whatever becomes of some, and within its time; on host memory."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stitch_tui.tools.worker.answers import Done
from stitch_tui.tools.worker.examination import border_of
from stitch_tui.tools.worker.launch import Launch
from stitch_tui.tools.worker.race import BEHIND, LEAST_SECONDS, NO_TIME, SURE, Race, RaceOptions, race
from stitch_tui.tools.worker.reference import Options, Reference
from stitch_tui.tools.worker.session import Session
from stitch_tui.tools.worker.task import Task
from stitch_tui.tools.worker.timed_rig import TimedRig

from . import fake_cuda_runner
from .linear_target import REFERENCE, LinearRelu, compiled

OPTIONS = RaceOptions(seconds=100.0, blocks=6, sets=4, cold=False)


class Paced(TimedRig):
    """Each of its launches takes so many microseconds, in place of the fake driver's one."""

    pace_us = 1.0

    def burst(self, count: int, *, cold: bool) -> Done:
        done = super().burst(count, cold=cold)
        return replace(done, times_us=[self.pace_us] * len(done.times_us))


class Clock:
    """Goes on by a step whenever it is looked at."""

    def __init__(self, step_s: float) -> None:
        self.step_s, self.now_s = step_s, 0.0

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


def contestant(library: Path, pace_us: float = 1.0) -> Paced:
    argv = (sys.executable, fake_cuda_runner.__file__, "cuda")
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    rig = Paced(border_of(LinearRelu()), Launch(argv, load=str(library), env=environment, isolate=False))
    rig.pace_us = pace_us
    return rig


def raced(rigs: dict[str, TimedRig], options: RaceOptions = OPTIONS, step_s: float = 0.0) -> dict[str, Any]:
    return Race(LinearRelu(), rigs, options, lambda event, data: None, Clock(step_s)).run()  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("honest"))


def test_each_contestant_has_its_blocks_and_one_far_behind_only_so_many_as_show_it(honest: Path) -> None:
    paces = {"fast": 1.0, "near": BEHIND, "far": 2 * BEHIND}
    found = raced({name: contestant(honest, pace) for name, pace in paces.items()})
    assert {name: len(blocks) for name, blocks in found["blocks"].items()} == {
        "fast": OPTIONS.blocks,
        "near": OPTIONS.blocks,
        "far": SURE,
    }
    assert found["blocks"]["far"][0] == [2 * BEHIND] * OPTIONS.sets
    assert (found["failed"], found["left_out"]) == ({}, {})


def test_one_that_does_not_load_and_one_that_crashes_leave_the_rest(tmp_path: Path, honest: Path) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"no library")
    crashing = compiled(tmp_path, "CRASHES")
    rigs = {"broken": contestant(broken), "crashing": contestant(crashing), "honest": contestant(honest)}
    found = raced(rigs)
    assert set(found["failed"]) == {"broken", "crashing"}
    assert all(": " in reason for reason in found["failed"].values())
    assert list(found["blocks"]) == ["honest"]


def test_who_fails_in_the_middle_of_the_race_is_out_of_it(honest: Path) -> None:
    class Tiring(Paced):
        left = 4

        def burst(self, count: int, *, cold: bool) -> Done:
            self.left -= 1
            return replace(super().burst(count, cold=cold), event_us=0.0 if self.left > 0 else 1e9)

    tiring = contestant(honest)
    tiring.__class__ = Tiring
    found = raced({"tiring": tiring, "honest": contestant(honest)})
    assert list(found["blocks"]) == ["honest"]
    assert len(found["blocks"]["honest"]) == OPTIONS.blocks
    assert "went on" in found["failed"]["tiring"]


def test_nobody_starts_late_and_nobody_is_timed_after_the_end(honest: Path) -> None:
    rigs = {name: contestant(honest) for name in ("first", "second", "third")}
    found = raced(rigs, replace(OPTIONS, seconds=10.0), step_s=2.4)
    assert list(found["blocks"]) == ["first"]
    assert len(found["blocks"]["first"]) < OPTIONS.blocks
    assert found["left_out"] == {"second": NO_TIME, "third": NO_TIME}


def test_a_contestant_that_hangs_is_waited_for_no_longer_than_the_race_lasts() -> None:
    launch = Launch((), deadline_s=60.0)
    for seconds, deadline_s in ((20.0, 20.0), (0.1, LEAST_SECONDS), (100.0, 60.0)):
        assert RaceOptions(seconds=seconds).within(launch).deadline_s == deadline_s


def test_the_judge_races_runners_by_name(honest: Path, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(REFERENCE)
    session = Session()
    session.task = Task(Reference.open(Options(project=tmp_path, path="model.py")))
    argv = [sys.executable, fake_cuda_runner.__file__, "cuda"]
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    runner = {"argv": argv, "load": str(honest), "env": environment, "isolate": False}
    events = list[str]()
    params = {
        "target": {"kind": "program"},
        "runners": {"one": runner, "gone": runner | {"load": str(tmp_path / "gone.so")}},
        "options": {"seconds": 1000.0, "blocks": 2, "sets": 3},
    }
    found = race(session, params, lambda event, data: events.append(event))
    assert {name: len(blocks) for name, blocks in found["blocks"].items()} == {"one": 2}
    assert list(found["failed"]) == ["gone"]
    assert events == ["stage", "stage", "block", "block"]


def test_a_race_without_any_time_times_nobody(honest: Path) -> None:
    found = raced({"only": contestant(honest)}, replace(OPTIONS, seconds=0.0), step_s=1.0)
    assert found == {"blocks": {}, "failed": {}, "left_out": {"only": NO_TIME}}
