"""Every test of the command line has a home, a state folder and a project of its own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    for name, folder in {"HOME": "", "XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state"}.items():
        monkeypatch.setenv(name, str(home / folder))
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "project with space"
    project.mkdir()
    monkeypatch.chdir(project)
    return project
