"""``stitch --auto --json`` on a run that cannot begin."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stitch_tui.agents import detached
from stitch_tui.cli import invoke
from stitch_tui.commands import run
from stitch_tui.tools.errors import StitchError


@pytest.mark.parametrize(
    ("arguments", "config", "words"),
    [
        (["nope.py"], "", "no such file"),
        (["nope.py"], "[limits]\niteration = 3\n", "limits.iterations"),
        (["nope.py"], '[models.coder]\nbase_url = "http://x/v1"\n', "not trusted"),
        (["--set", "minutes"], "", "KEY=VALUE"),
    ],
)
def test_it_says_so_in_one_line_of_stderr_and_one_last_event(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], config: str, words: str
) -> None:
    if config:
        (project / "stitch.toml").write_text(config)
    assert invoke(["--auto", "--json", *arguments]) == 2
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert words in line
    event = json.loads(printed.out.splitlines()[-1])
    assert (event["type"], event["exit_code"], event["status"]) == ("session.finished", 2, "failed")
    assert words in event["reason"]


@pytest.mark.parametrize("name", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_engine_runs_is_an_interruption_with_its_code(name: signal.Signals) -> None:
    before = signal.getsignal(name)
    with pytest.raises(StitchError, match="interrupted") as stopped, run._signals():
        os.kill(os.getpid(), name)
    assert stopped.value.exit_code == 128 + name
    assert signal.getsignal(name) is before


ENDS = """
import asyncio, os, signal
from pathlib import Path
from stitch_tui.agents import presence

def end_in_its_own_time(begin):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    begin()
    signal.sigwait({signal.SIGTERM})
    sum(range(10**7))
    Path("ended").touch()

async def claim():
    async with presence.claimed(Path.cwd()):
        end_in_its_own_time(lambda: print(flush=True))
"""
"""A process that is told to end and takes a moment, as an engine does."""


@pytest.fixture
def root(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes import this checkout, and find a runtime folder."""
    monkeypatch.setenv("PYTHONPATH", str(Path(run.__file__).parents[2]))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(project.parent))
    project.parent.chmod(0o700)


@pytest.mark.usefixtures("root")
def test_a_signal_to_the_starter_ends_the_engine_that_starts(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "m.py").touch()
    code = f"{ENDS}end_in_its_own_time(lambda: os.kill(os.getppid(), signal.SIGTERM))"
    monkeypatch.setattr(detached, "COMMAND", (sys.executable, "-c", code))
    assert invoke(["--auto", "m.py", "--detach"]) == 128 + signal.SIGTERM
    assert (project / "ended").exists()


@pytest.mark.usefixtures("root")
def test_stop_waits_for_an_engine_that_still_starts(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = f"{ENDS}asyncio.run(claim())"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as engine:
        assert engine.stdout
        assert engine.stdout.readline() == b"\n"
        assert invoke(["stop"]) == 0
        assert (project / "ended").exists()
    assert capsys.readouterr().out == f"stopped pid {engine.pid}, which was starting\n"
