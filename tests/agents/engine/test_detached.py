"""The detached engine with a real judge and emulator: it outlives its terminal, and a kill costs one step."""

import asyncio
import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from engine_here import Run
from engine_projects import Project

from stitch_tui.agents import detached, journal
from stitch_tui.agents.engine import Request
from stitch_tui.agents.events import Event
from stitch_tui.agents.presence import Engine
from stitch_tui.agents.settings import Settings
from stitch_tui.session import Gone, connected, found
from stitch_tui.tools.errors import StitchError
from stitch_tui.tools.iteration import Outcome

TINY = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return torch.relu(x) * 2
def get_inputs(): return [torch.randn(4, 16)]
def get_init_inputs(): return []
"""


@pytest.fixture
def tiny(project: Project) -> Project:
    (project.folder / "tiny.py").write_text(TINY)
    return project


def in_a_terminal_that_closes(project: Project, *words: str) -> str:
    """Run a command of stitch's in a terminal of its own, then close that; what it printed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "stitch_tui", *words],
        cwd=project.folder,
        env=project.environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    printed = b""
    try:
        while not printed.endswith(b"\n") and (data := os.read(ours, 4096)):
            printed += data
    except OSError:  # EIO: the last process on the terminal has gone
        pass
    os.close(ours)
    process.wait(timeout=60)
    return printed.decode().strip()


def follow(project: Project, until: Callable[[Event], bool], *command: str) -> list[Event]:
    """Attach, have a command of stitch's run, and read up to the wanted event."""

    async def view() -> list[Event]:
        seen: list[Event] = []
        async with connected(found(project.folder)) as connection:
            assert not command or project.said(*command)[0] == 0
            async for event in connection.stream():
                seen.append(event)
                if until(event):
                    break
        return seen

    return asyncio.run(view())


@pytest.mark.slow
def test_a_detached_run_outlives_its_terminal_and_a_kill(tiny: Project) -> None:
    before = tiny.user_state()
    session = in_a_terminal_that_closes(
        tiny, "--auto", "tiny.py", "--device", "emulator", "--detach", "--set", "autonomy.mode=ask-plan"
    )
    engine = found(tiny.folder)
    assert engine.session == session
    assert os.getsid(engine.pid) == engine.pid
    assert os.readlink(f"/proc/{engine.pid}/fd/0") == "/dev/null"
    assert os.readlink(f"/proc/{engine.pid}/fd/2").endswith(f"{session}/engine.log")
    code, out, _ = tiny.said("status", "--json")
    assert (code, json.loads(out)["running"], json.loads(out)["id"]) == (0, True, session)
    follow(tiny, lambda event: event.type == "plan.proposed")
    follow(tiny, lambda event: event.type == "code.written", "ctl", "approve")
    children = descendants(engine.pid)
    os.kill(engine.pid, signal.SIGKILL)  # at once: the verdict is a second away
    assert gone(engine, children)
    code, out, _ = tiny.said("status")
    assert code == 1
    assert "its engine was killed" in out

    code, out, err = tiny.said("--auto", "--resume", "--device", "emulator", "--json")
    assert code == 0, err
    assert json.loads(out.splitlines()[-1])["type"] == "session.finished"
    outcomes = [i.outcome for i in tiny.session.iterations]
    assert outcomes == [Outcome.CANCELLED, Outcome.KEPT, Outcome.KEPT]
    assert [i.commit for i in tiny.session.iterations] == [c.sha for c in tiny.commits]
    assert tiny.user_state() == before

    for _ in range(2):  # again is no fault
        assert tiny.said("export", "../one.py", "--format", "kernelbench")[0] == 0
    exported = (tiny.folder.parent / "one.py").read_text()
    compile(exported, "one.py", "exec")
    assert "class ModelReference(" in exported
    assert "__global__" in exported

    (tiny.folder / "tiny.py").write_text(TINY.replace("* 2", "* 3"))
    code, out, err = tiny.said("--auto", "--resume", session, "--device", "emulator", "--json")
    assert code == 2
    assert err.startswith("stitch: tiny.py: the reference was changed since this session began")
    assert [json.loads(line)["type"] for line in out.splitlines()] == ["error", "session.finished"]


def descendants(pid: int) -> list[int]:
    """Processes that the engine started, directly or not."""
    found: list[int] = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += [int(child), *descendants(int(child))]
    return found


def gone(engine: Engine, children: list[int]) -> bool:
    """Wait until the killed engine and everything it had started has ended: a compiler may finish first."""
    for pid in (engine.pid, *children):
        try:
            watched = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        if not select.select([watched], [], [], 200)[0]:
            return False
        os.close(watched)
    return True


def test_what_keeps_a_detached_run_from_beginning_is_told_at_once(tiny: Project) -> None:
    (tiny.folder / "tiny.py").write_text("import nothing_like_this\n")
    code, out, err = tiny.said("--auto", "tiny.py", "--device", "emulator", "--detach")
    assert (code, out) == (2, "")
    assert "nothing_like_this" in err
    assert err.count("\n") == 1
    assert journal.sessions(tiny.folder) == []


def test_the_engine_imports_no_module_of_the_projects(run: Run) -> None:
    folder = run.project.folder
    for name in ("platformdirs", "json", "stitch_tui"):
        (folder / f"{name}.py").write_text("open('imported', 'w')\n")
    settings = Settings.model_validate({"models": {"coder": {"provider": "openai"}}})
    with pytest.raises(StitchError, match="no endpoint for this role"):
        detached.start(Request(folder, settings, reference="model.py"))
    assert not (folder / "imported").exists()


def test_what_else_an_engine_prints_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prints = "print('hello'); print('[1]'); print('{\"session\": \"x\"}')"
    monkeypatch.setattr(detached, "COMMAND", (sys.executable, "-c", prints))
    assert detached.start(Request(tmp_path, Settings())) == "x"


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ("print('hello'); raise MemoryError('all of it')", "while it started: MemoryError: all of it"),
        ("import os; os.kill(os.getpid(), 9)", "while it started: signal 9"),
    ],
)
def test_an_engine_that_ends_at_once_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str, said: str
) -> None:
    monkeypatch.setattr(detached, "COMMAND", (sys.executable, "-c", ends))
    with pytest.raises(StitchError, match=said):
        detached.start(Request(tmp_path, Settings()))


@pytest.mark.parametrize("words", [["attach"], ["ctl", "approve"]])
def test_a_command_without_an_engine_is_one_line(tiny: Project, words: list[str]) -> None:
    code, out, err = tiny.said(*words)
    assert (code, out) == (2, "")
    assert "no engine runs in this project" in err


def test_the_command_line_watches_steers_and_stops_a_run(project: Project) -> None:
    engine = project.start(hang=[1])
    assert engine.stdout
    while '"code.written"' not in engine.stdout.readline():
        pass
    assert project.said("pause", "--json")[0] == 0
    code, _, err = project.said("ctl", "redirect", "s02", "tiles", "--generation", "7")
    assert code == 2
    assert "stale" in err
    code, out, _ = project.said("ctl", "redirect", "s02", "tiles")
    assert (code, out) == (0, "takes effect before its next attempt\n")
    watching = project.stitch("attach", "--json")
    assert watching.stdout
    assert json.loads(watching.stdout.readline())["type"] == "session.started"
    watching.send_signal(signal.SIGINT)
    assert watching.wait(timeout=60) == 0, "Ctrl+C detaches"
    assert engine.poll() is None, "and the run goes on"
    watching = project.stitch("attach")
    assert watching.stderr
    assert watching.stderr.readline().startswith("session ")
    code, out, _ = project.said("stop")
    assert (code, out) == (0, "stopped: stopped by human\n")
    out, err = watching.communicate(timeout=60)
    assert watching.returncode == 1
    assert "decision   stop by human" in err
    engine.communicate(timeout=60)


def test_a_viewer_of_a_killed_engine_is_told_so(project: Project) -> None:
    engine = project.start(hang=[1])
    assert engine.stdout
    while '"code.written"' not in engine.stdout.readline():
        pass

    def killed(event: Event) -> bool:
        if event.type == "code.written":
            engine.kill()
        return False

    with pytest.raises(Gone, match="the engine was killed"):
        follow(project, killed)


LOSES_THE_DEVICE_ONCE = """
import os, sys
real = torch.arange
def arange(*given, **named):
    if sys._getframe(1).f_globals["__name__"].endswith("device_probe") and os.path.exists("lose"):
        os.remove("lose")
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    return real(*given, **named)
torch.arange = arange
"""
"""What a judge sees whose context a sticky error has ended; on a CPU nothing else ends it."""


@pytest.mark.slow
def test_a_judge_that_lost_its_device_is_replaced_and_nothing_is_held_against_the_candidate(
    tiny: Project,
) -> None:
    (tiny.folder / "tiny.py").write_text(TINY + LOSES_THE_DEVICE_ONCE)
    (tiny.folder / "lose").write_text("")
    code, out, err = tiny.said("--auto", "tiny.py", "--device", "emulator", "--json")
    assert code == 0, err
    assert not (tiny.folder / "lose").exists()
    told = [json.loads(line) for line in out.splitlines()]
    (warning,) = [event["text"] for event in told if event["type"] == "warning"]
    assert "an illegal memory access was encountered" in warning
    assert "another judge does this again" in warning
    assert [i.outcome for i in tiny.session.iterations] == [Outcome.KEPT, Outcome.KEPT]


@pytest.mark.slow
def test_a_judge_that_is_killed_once_is_replaced(tiny: Project) -> None:
    kills = LOSES_THE_DEVICE_ONCE.replace('raise RuntimeError("CUDA error', 'os.kill(os.getpid(), 9)  # ("')
    (tiny.folder / "tiny.py").write_text(TINY + kills)
    (tiny.folder / "lose").write_text("")
    code, out, err = tiny.said("--auto", "tiny.py", "--device", "emulator", "--json")
    assert code == 0, err
    told = [json.loads(line) for line in out.splitlines()]
    (warning,) = [event["text"] for event in told if event["type"] == "warning"]
    assert "the reference was killed" in warning
    assert [i.outcome for i in tiny.session.iterations] == [Outcome.KEPT, Outcome.KEPT]
