"""``stitch --auto`` on tasks of reductions, norms, pooling and scans: everything is covered and right."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TASKS = sorted((ROOT / "tests" / "tasks").glob("*.py"))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.stem)
def test_a_task_is_stitched_whole_and_right(project: Path, task: Path) -> None:
    shutil.copy(task, project)
    identity = ["-c", "user.name=A Person", "-c", "user.email=person@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-qm", "A task"]):
        subprocess.run(["git", *arguments], cwd=project, check=True)
    done = subprocess.run(
        [sys.executable, "-m", "stitch_tui", "--json", "--auto", task.name],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    finished = json.loads(done.stdout.splitlines()[-1])
    assert finished["type"] == "session.finished"
    assert finished["reason"].endswith("and the program correct")
    assert finished["coverage"] == pytest.approx(1)
    again = subprocess.run(
        [sys.executable, "-m", "stitch_tui", "recheck", "--json"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert again.returncode == 0, again.stderr[-3000:]
    assert json.loads(again.stdout)["now"]["category"] == "correct"
