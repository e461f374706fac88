"""Real repositories in a world without the developer's own git configuration."""

import hashlib
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from stitch_tui.tools.history import History, Iteration, Kind, Outcome, Started
from stitch_tui.tools.verdict import Category

SESSION = "20261129-1402-lenet"


class Project:
    """A git repository with a project in it, and what a test does to both."""

    def __init__(self, top: Path, folder: str = "") -> None:
        self.top, self.path = top, top / folder

    def git(self, *args: str, check: bool = True) -> str:
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        done = subprocess.run(
            ["git", *who, *args], cwd=self.top, check=check, capture_output=True, encoding="utf-8"
        )
        return done.stdout.rstrip("\n")

    def write(self, name: str, text: str | bytes) -> Path:
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode())
        return place

    def save(self, message: str = "work") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    @property
    def history(self) -> History:
        return History.open(self.path)

    def snapshot(self) -> dict[str, Any]:
        """Everything of the user's that stitch must leave as it is."""
        git_dir = Path(self.git("rev-parse", "--absolute-git-dir"))
        common = (self.top / self.git("rev-parse", "--git-common-dir")).resolve()
        watched = [git_dir / "HEAD", git_dir / "index", common / "config", common / "packed-refs"]
        watched += [Path(os.environ["HOME"]) / ".gitconfig", common / "info" / "exclude"]
        refs = self.git("for-each-ref", "--format=%(refname) %(objectname)").split("\n")
        return {
            "watched": {str(path): _digest(path) for path in watched},
            "files": {
                str(path): _digest(path)
                for path in sorted(self.top.rglob("*"))
                if not {".git", ".stitch"} & set(path.relative_to(self.top).parts)
            },
            "refs": [ref for ref in refs if ref and not ref.startswith("refs/heads/stitch")],
            "git": sorted(path.name for path in git_dir.iterdir() if path.name != "logs"),
            "head log": self.git("reflog", "show", "HEAD", check=False),
            "stash": self.git("stash", "list"),
        }

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Assert that the block changes nothing of the user's."""
        before = self.snapshot()
        yield
        assert self.snapshot() == before
        assert self.git("fsck", "--no-dangling", "--no-progress") == ""


def _digest(path: Path) -> str:
    if path.is_symlink():
        return f"-> {os.readlink(path)}"
    if not path.is_file():
        return "folder" if path.is_dir() else "absent"
    return f"{path.stat().st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"


@pytest.fixture(autouse=True)
def world(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty HOME: no identity, no configuration, no variable of git's."""
    home = tmp_path_factory.mktemp("home")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("EMAIL", raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return home


@pytest.fixture
def make_project(tmp_path: Path) -> Callable[..., Project]:
    def make(name: str = "repo", *init: str, folder: str = "", empty: bool = False) -> Project:
        top = tmp_path / name
        top.mkdir(parents=True)
        project = Project(top, folder)
        project.git("init", "-q", "-b", "main", *init)
        project.path.mkdir(parents=True, exist_ok=True)
        if not empty:
            project.write("model.py", "class Model: ...\n")
            project.save()
        return project

    return make


@pytest.fixture
def project(make_project: Callable[..., Project]) -> Project:
    return make_project()


@pytest.fixture
def iteration() -> Callable[..., Iteration]:
    def make(number: int, **fields: Any) -> Iteration:
        usual = {"kind": Kind.OPTIMISE, "outcome": Outcome.KEPT, "verdict": Category.CORRECT}
        return Iteration.model_validate({"session": SESSION, "iteration": number} | usual | fields)

    return make


@pytest.fixture
def record(iteration: Callable[..., Iteration]) -> Callable[..., tuple[History, list[str]]]:
    """Write a session of iterations, each given as (files, fields) -> the history and the commits."""

    def make(project: Project, *steps: tuple[dict[str, bytes], dict[str, Any]]) -> tuple[History, list[str]]:
        history = project.history
        started: Started = history.start_session(SESSION)
        shas = [started.sha]
        for number, (files, fields) in enumerate(steps, 1):
            shas.append(history.commit(SESSION, files, iteration(number, **fields), shas[-1]))
        return history, shas

    return make
