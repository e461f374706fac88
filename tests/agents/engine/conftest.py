"""The project that each test of the engine works in, and one recording of a real judge for all."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from engine_here import Run
from engine_projects import MODEL, Project, made

from stitch_tui.tools.judge import Judge
from stitch_tui.tools.reference import ReferenceOptions


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
def project(tmp_path: Path, recording: Path, cache_home: Path) -> Iterator[Project]:
    project = made(tmp_path, recording, cache_home)
    yield project
    for process in project.running:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def run(project: Project, monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(project, monkeypatch)
