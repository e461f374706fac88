"""The start screen: what it lists, what its rows lead to, and what it says when nothing comes of it."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pilots import fed, finished, pressed
from shown_sessions import SESSION, emulated, in_progress, numbered
from textual.pilot import Pilot
from textual.widgets import OptionList, Static

from stitch_tui import project_init, session
from stitch_tui.agents import detached, events, journal
from stitch_tui.agents.events import Event
from stitch_tui.agents.settings import Settings
from stitch_tui.agents.state import Status
from stitch_tui.app import StitchApp
from stitch_tui.screens.help import HelpScreen
from stitch_tui.screens.session import SessionScreen
from stitch_tui.screens.start import StartScreen

REFERENCE = "class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"
MET = events.SessionFinished(status=Status.GOAL_MET, exit_code=0, reason="all correct")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two references, a file that is none, a session that ended and one whose engine was killed."""
    (tmp_path / "nets").mkdir()
    for name in ("model.py", "nets/mlp.py"):
        (tmp_path / name).write_text(REFERENCE)
    (tmp_path / "train.py").write_text("import model\nx = 'def get_inputs'\n")
    hidden = tmp_path / ".venv" / "model.py"
    hidden.parent.mkdir()
    hidden.write_text(REFERENCE)
    write(tmp_path, SESSION, in_progress())
    write(tmp_path, "20261130-1100-mlp", [*emulated(), MET])
    return tmp_path


def write(project: Path, name: str, made: list[Event]) -> None:
    path = journal.path_of(project, name)
    path.parent.mkdir(parents=True)
    lines = [event.model_copy(update={"session": name}).model_dump_json() for event in numbered(made)]
    path.write_text("\n".join(lines) + "\n")


@asynccontextmanager
async def started(project: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pilot[None]]:
    monkeypatch.setattr(StartScreen, "examine", lambda self: None)  # starts torch in a process of its own
    app = StitchApp(StartScreen(project), project, Settings())
    async with app.run_test(size=(100, 30)) as pilot:
        await listed(pilot)
        yield pilot


async def listed(pilot: Pilot[None]) -> None:
    while not pilot.app.screen.query_one("#choice", OptionList).option_count:
        await pilot.pause(0.01)
    await finished(pilot.app, "look")
    await pilot.pause()


def picture(pilot: Pilot[None]) -> str:
    return "\n".join(strip.text for strip in pilot.app.screen._compositor.render_strips())


def test_sessions_and_references_are_found_without_reading_them_whole(project: Path) -> None:
    os.mkfifo(project / "pipe.py")
    (project / "zero.py").symlink_to("/dev/zero")
    assert project_init.references(project) == ["model.py", "nets/mlp.py"]
    ended, killed = session.known(project, 9)
    assert (ended.name, ended.ended and ended.ended.status) == ("20261130-1100-mlp", Status.GOAL_MET)
    assert (killed.name, killed.ended, killed.iterations) == (SESSION, None, 6)
    (journal.path_of(project, "torn")).parent.mkdir()
    journal.path_of(project, "torn").write_text('{"v":1,')
    assert len(list(session.known(project, 9))) == 2


def test_a_session_is_shown_and_left_for_the_list_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look() -> None:
        async with started(project, monkeypatch) as pilot:
            shown = picture(pilot)
            for text in ("20261130-1100-mlp  goal met", f"{SESSION}  killed", "▸ model.py", "▸ nets/mlp.py"):
                assert text in shown
            offered = {a.binding.action for a in pilot.app.screen.active_bindings.values() if a.enabled}
            assert {"look", "other"} <= offered
            assert "go_on" not in offered, "its goal is met"
            await pressed(pilot, "down")
            offered = {a.binding.action for a in pilot.app.screen.active_bindings.values() if a.enabled}
            assert "go_on" in offered
            for keys in (["v"], ["up", "enter"]):
                await pressed(pilot, *keys)
                there = pilot.app.screen
                assert isinstance(there, SessionScreen)
                await fed(pilot)
                assert not there.steerable
                await pressed(pilot, "ctrl+q")
                await pilot.pause()
                assert isinstance(pilot.app.screen, StartScreen), "there is no run to ask about"
            await pressed(pilot, "question_mark")
            assert isinstance(pilot.app.screen, HelpScreen)
            assert "/approve" not in picture(pilot)
            await pressed(pilot, "escape", "ctrl+q")
        assert pilot.app.return_code == 0

    asyncio.run(look())


def test_an_engine_that_cannot_begin_says_why(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = json.dumps({"what": "no Model here", "where": "nets/mlp.py", "exit_code": 2})
    told = project / "request.json"
    refuse = f"import sys; open({str(told)!r}, 'w').write(sys.stdin.read()); print({said!r})"
    monkeypatch.setattr(detached, "COMMAND", (sys.executable, "-c", refuse))

    async def begin() -> None:
        async with started(project, monkeypatch) as pilot:
            await pressed(pilot, "o", *"nets/mlp.py", "enter")
            await finished(pilot.app, "start")
            await pilot.pause()
            assert "no Model here" in str(pilot.app.screen.query_one("#doing", Static).content)
            assert isinstance(pilot.app.screen, StartScreen)
            request = json.loads(told.read_text())
            asked = request["reference"], request["resume"], request["settings"]["autonomy"]["mode"]
            assert asked == ("nets/mlp.py", None, "ask-plan")
            await pressed(pilot, "escape", "down", "c")
            await finished(pilot.app, "start")
            assert json.loads(told.read_text())["resume"] == SESSION

    asyncio.run(begin())


def test_an_empty_folder_asks_for_a_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def look() -> None:
        async with started(tmp_path, monkeypatch) as pilot:
            assert "no reference found here: name one" in picture(pilot)
            await pressed(pilot, "enter", "x", "escape")
            assert pilot.app.screen.query_one("#choice", OptionList).has_focus

    asyncio.run(look())
