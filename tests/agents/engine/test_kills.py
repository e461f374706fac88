"""Two hundred kills at random points of real runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from engine_projects import ROOT

KILLS = os.environ.get("STITCH_KILLS", "200")
SEED = os.environ.get("STITCH_KILLS_SEED", "1")


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_runs_that_are_killed_at_random_points_complete_and_leave_nothing(
    cache_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prints how many of what were killed.  STITCH_KILLS and STITCH_KILLS_SEED: how many, and where."""
    script = Path(__file__).with_name("kill_runs.py")
    argv = [sys.executable, str(script), "--kills", KILLS, "--seed", SEED, "--warm", str(cache_home)]
    done = subprocess.run(argv, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True)
    with capsys.disabled():
        print(f"\n{done.stdout}")
    assert done.returncode == 0
