"""Figures of a GPU within a given time: what is run next, what is kept, what is not run again."""

import asyncio
import json
import os
import sys
from pathlib import Path

from processes import ended

from benchmarks.campaign import Campaign, Step, next_step, stopped

FIRST = Step("first", 30.0, ("-c", "print('one')"), "shared")
SECOND = Step("second", 60.0, ("-c", "print('two')"), "shared")
THIRD = Step("third", 10.0, ("-c", "print('three')"))
STEPS = (FIRST, SECOND, THIRD)


def test_the_most_wanted_step_that_fits_into_the_time_left_comes_first() -> None:
    assert next_step(STEPS, (), (), 100.0) == FIRST
    assert next_step(STEPS, ("first",), (), 100.0) == SECOND
    assert next_step(STEPS, ("first",), (), 59.0) == THIRD
    assert next_step(STEPS, ("first", "third"), (), 59.0) is None


def test_steps_that_write_the_same_file_do_not_run_side_by_side() -> None:
    assert next_step(STEPS, (), (FIRST,), 100.0) == THIRD
    assert next_step(STEPS, (), (FIRST, THIRD), 100.0) is None


def test_every_step_is_run_once_and_what_it_printed_is_kept(tmp_path: Path) -> None:
    asyncio.run(Campaign(STEPS, tmp_path, 1000.0, None).run(["GPU-a", "GPU-b"]))
    rows = json.loads((tmp_path / "campaign.json").read_text())
    assert {name: row["passed"] for name, row in rows.items()} == {step.name: True for step in STEPS}
    assert (tmp_path / "logs" / "second.log").read_text() == "two\n"


def test_what_failed_is_run_again_and_what_passed_is_not(tmp_path: Path) -> None:
    count = "import pathlib, sys; p = pathlib.Path(sys.argv[1]); n = p.exists(); p.touch(); sys.exit(not n)"
    mended = Step("mended", 1.0, ("-c", count, "{keep}/there"))
    once = Step("once", 1.0, ("-c", count.replace("not n", "n"), "{keep}/once"))
    for expected in (False, True):
        campaign = Campaign((mended, once), tmp_path, 1000.0, None)
        asyncio.run(campaign.run(["GPU-a"]))
        assert campaign.rows["mended"]["passed"] == expected
        assert campaign.rows["once"]["passed"]


def test_a_step_for_which_something_is_missing_is_left_out(tmp_path: Path) -> None:
    step = Step("tasks", 1.0, ("-c", "pass", "{kernelbench}/src"))
    campaign = Campaign((step,), tmp_path, 1000.0, None)
    asyncio.run(campaign.run(["GPU-a"]))
    assert not campaign.rows


def test_a_step_is_stopped_with_all_that_it_started() -> None:
    pid = asyncio.run(started_and_stopped())
    assert ended(pid)


async def started_and_stopped() -> int:
    endless = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    deaf = "from signal import *; import os; signal(15, SIG_IGN); print(os.getpid(), flush=True); pause()"
    hear, say = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", endless, deaf), stdout=say, start_new_session=True
    )
    os.close(say)
    said = b""
    while not said.endswith(b"\n"):
        said += os.read(hear, 64)
    await stopped(process)
    assert os.read(hear, 64) == b""  # nobody holds its other end
    os.close(hear)
    return int(said)
