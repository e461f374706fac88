"""A project with a user's dirty tree, and engines in it as real processes."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stitch_tui.agents import events, journal
from stitch_tui.agents.commands import Command, Reply
from stitch_tui.agents.events import Event
from stitch_tui.agents.state import Session
from stitch_tui.tools.history import Commit, History

ROOT = Path(__file__).resolve().parents[3]
SCRIPTED = Path(__file__).with_name("scripted_engine.py")
MODEL = """
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
    def forward(self, x):
        return self.norm(torch.relu(x) * 2).logcumsumexp(0).sigmoid()
def get_inputs(): return [torch.randn(4, 16)]
def get_init_inputs(): return []
"""


@dataclass
class Project:
    """A user's project and the engines that run in it."""

    folder: Path
    recording: Path
    environment: dict[str, str]
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, **script: Any) -> subprocess.Popen[str]:
        """A scripted engine; its stdout carries the events."""
        path = self.folder.parent / f"script-{len(self.running)}.json"
        settings = {"autonomy": {"mode": "auto"}} | script.pop("settings", {})
        known = {"project": str(self.folder), "recording": str(self.recording), "script": str(path)}
        path.write_text(json.dumps(known | {"settings": settings} | script))
        return self._popen(sys.executable, str(SCRIPTED), str(path))

    def run(self, **script: Any) -> tuple[int, list[Event]]:
        """A scripted engine to its end: exit code and events."""
        engine = self.start(**script)
        out, err = engine.communicate(timeout=600)
        assert "Traceback" not in err, err
        return engine.returncode, [events.parse(line) for line in out.splitlines()]

    def stitch(self, *words: str) -> subprocess.Popen[str]:
        """A command of stitch's."""
        return self._popen(sys.executable, "-m", "stitch_tui", *words)

    def said(self, *words: str) -> tuple[int, str, str]:
        """A command of stitch's to its end: exit code, stdout, stderr."""
        command = self.stitch(*words)
        out, err = command.communicate(timeout=600)
        return command.returncode, out, err

    def _popen(self, *argv: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            argv,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(process)
        return process

    @property
    def session(self) -> Session:
        """The latest session, from its journal."""
        return events.fold(journal.read(self.journal))

    def session_named(self, name: str) -> Session:
        """That session, from its journal."""
        return events.fold(journal.read(journal.path_of(self.folder, name)))

    @property
    def journal(self) -> Path:
        return journal.path_of(self.folder, journal.sessions(self.folder)[0])

    @property
    def history(self) -> History:
        return History.open(self.folder)

    @property
    def commits(self) -> list[Commit]:
        return self.history.log()

    def user_state(self) -> dict[str, bytes]:
        """Everything of the user's: files, HEAD, index, branches that are not stitch's."""
        files = {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.relative_to(self.folder).parts[0] not in (".git", ".stitch")
        }
        git = self.folder / ".git"
        heads = sorted(
            path for path in (git / "refs").rglob("*") if path.is_file() and "stitch" not in path.parts
        )
        files |= {str(path.relative_to(git)): path.read_bytes() for path in heads}
        return files | {name: (git / name).read_bytes() for name in ("HEAD", "index", "config")}


def made(root: Path, recording: Path, cache: Path) -> Project:
    """A project in `root`, with a commit and an edit of the user's that is not committed."""
    folder = root / "my project"
    folder.mkdir()
    (folder / "model.py").write_text(MODEL)
    (folder / "notes.txt").write_text("committed\n")
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-C", str(folder)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "mine"], check=True)
    (folder / "notes.txt").write_text("edited, not committed\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STITCH_")} | {
        "PYTHONPATH": str(ROOT),
        "HOME": str(root),
        "XDG_CACHE_HOME": str(cache),
        "XDG_RUNTIME_DIR": str(root / "run"),
        "XDG_STATE_HOME": str(root / "state"),
        "XDG_CONFIG_HOME": str(root / "config"),
    }
    (root / "run").mkdir(mode=0o700)
    return Project(folder, recording, environment)


def until(engine: subprocess.Popen[str], wanted: Callable[[Event], bool]) -> list[Event]:
    """The events that an engine prints, up to and with the wanted one."""
    assert engine.stdout
    seen: list[Event] = []
    for line in engine.stdout:
        seen.append(events.parse(line))
        if wanted(seen[-1]):
            return seen
    raise AssertionError(f"it ended with {seen[-1] if seen else engine.communicate()}")


def of_type(kind: str, number: int = 1) -> Callable[[Event], bool]:
    """Is it the n-th event of that type?"""
    left = [number]

    def wanted(event: Event) -> bool:
        left[0] -= event.type == kind
        return event.type == kind and left[0] == 0

    return wanted


def send(project: Project, *made: Command) -> list[Reply]:
    """Send commands over one connection; their replies."""
    from stitch_tui.session import connected, found

    async def talk() -> list[Reply]:
        async with connected(found(project.folder)) as connection:
            return [await connection.ask(command) for command in made]

    return asyncio.run(talk())
