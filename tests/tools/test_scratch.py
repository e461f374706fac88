"""Temporary folders are gone after every end of a process, by the next start at the latest."""

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from stitch_tui.tools.judge import Judge

HOLDS = """
import sys
from stitch_tui.tools import scratch
with scratch.folder("stitch-test-") as folder:
    (folder / "left").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""


def holder(temporary: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process with a temporary folder, and that folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS],
        env=os.environ | {"TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    return process, Path(process.stdout.readline().strip())


def test_what_a_kill_left_is_removed_by_the_next_start_and_nothing_else(tmp_path: Path) -> None:
    killed, left = holder(tmp_path)
    killed.kill()
    killed.communicate()
    assert (left / "left").exists()
    alive, held = holder(tmp_path)
    other, second = holder(tmp_path)
    assert not left.exists()
    assert (held / "left").exists(), "its owner lives"
    for process in (alive, other):
        process.communicate("")
        assert process.returncode == 0
    [parent] = tmp_path.iterdir()
    assert (list(parent.iterdir()), second.exists()) == ([], False)


def test_a_judges_folders_lie_in_those_of_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("stitch_tui.tools.scratch.own", lambda: tmp_path / "ours")

    async def variable() -> str:
        async with Judge(sys.executable, tmp_path) as judge:
            environment = Path(f"/proc/{judge.info['pid']}/environ").read_bytes()
        return next(v for v in environment.decode().split("\0") if v.startswith("_STITCH_SCRATCH="))

    assert asyncio.run(variable()) == f"_STITCH_SCRATCH={tmp_path / 'ours'}"
