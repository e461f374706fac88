"""The project that each test of the engine works in, and one recording of a real judge for all."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from engine_here import Run  # noqa: E402
from engine_projects import MODEL, ROOT, Project  # noqa: E402

from stitch_tui.tools.judge import Judge  # noqa: E402
from stitch_tui.tools.reference import ReferenceOptions  # noqa: E402


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a real judge answers about `MODEL`."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "model.py").write_text(MODEL)
    path = folder / "answers.json"
    path.write_text(json.dumps(asyncio.run(_answers(folder))))
    return path


async def _answers(folder: Path) -> dict[str, Any]:
    options = ReferenceOptions(path="model.py").model_dump(exclude={"path"})
    params = {
        "open": {**options, "path": "model.py", "name": "", "project": str(folder)},
        "measure": {"budget_s": 1.0, "bandwidth": None, "peak_flops": {}},
    }
    async with Judge(sys.executable, folder, environment={"CUDA_VISIBLE_DEVICES": ""}) as judge:
        methods = ("open", "graph", "variants", "measure", "layout")
        return {method: await judge.call(method, params.get(method), timeout=200) for method in methods}


@pytest.fixture
def project(tmp_path: Path, recording: Path, pytestconfig: pytest.Config) -> Iterator[Project]:
    assert pytestconfig.cache
    folder = tmp_path / "my project"
    folder.mkdir()
    (folder / "model.py").write_text(MODEL)
    (folder / "notes.txt").write_text("committed\n")
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-C", str(folder)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "mine"], check=True)
    (folder / "notes.txt").write_text("edited, not committed\n")
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(pytestconfig.cache.mkdir("stitch")),
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    (tmp_path / "run").mkdir(mode=0o700)
    made = Project(folder, recording, environment)
    yield made
    for process in made.running:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def run(project: Project, monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(project, monkeypatch)
