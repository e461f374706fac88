"""A disk that is full in the middle of a commit or of a journal's line costs one step."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from engine_projects import ROOT

NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")
"""Where anyone may mount a file system."""


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = str(tmp_path_factory.mktemp("probe"))
    try:
        done = subprocess.run([*NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True)
    except FileNotFoundError:
        pytest.skip("no unshare(1) here")
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.decode().strip()}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("event", "number"), [("commit.intended", 1), pytest.param("code.written", 2, marks=pytest.mark.slow)]
)
def test_a_full_disk_ends_the_run_with_its_reason_and_a_resume_completes(
    namespace: None, tmp_path: Path, recording: Path, event: str, number: int
) -> None:
    script = Path(__file__).with_name("full_disk.py")
    argv = [*NAMESPACE, sys.executable, str(script), str(tmp_path), str(recording), event, str(number)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["code"], told["last"]) == (3, "session.finished")
    assert "No space left" in told["reason"]
    assert told["whole"], "the torn line was cut off"
    assert told["cancelled"] <= 1
