"""What the screen does outside of itself: an editor, the clipboard, themes in files, git."""

import asyncio
import base64
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from on_screen import shown
from pilots import finished
from shown_sessions import CODE, SESSION
from textual.widgets import DataTable

from stitch_tui import clipboard
from stitch_tui.agents.commands import Edit
from stitch_tui.app import StitchApp
from stitch_tui.screens.history import HistoryScreen
from stitch_tui.tools.history import History, Iteration, Kind, Outcome
from stitch_tui.tools.verdict import Category


@pytest.fixture(autouse=True)
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))


@contextmanager
def nothing(_: StitchApp) -> Iterator[None]:
    """In place of giving the terminal away: a test has none."""
    yield


def editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str) -> None:
    """An editor that applies `change`, Python code on ``text``, to its file."""
    program = tmp_path / "editor.py"
    program.write_text(
        f"import pathlib, sys\npath = pathlib.Path(sys.argv[1])\ntext = path.read_text()\n{change}\n"
        "path.write_text(text)\n"
    )
    monkeypatch.setenv("VISUAL", f"{sys.executable} {program}")
    monkeypatch.setattr(StitchApp, "suspend", nothing)


def test_the_plan_is_edited_in_the_persons_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def edit() -> None:
        async with shown() as screen:
            editor(monkeypatch, tmp_path, "text = text.replace('s03 attention scores', 's03 scores')")
            await screen.press("E")
            assert "1 change: s03: title" in screen.picture
            assert screen.engine.told == [], "asked once"
            await screen.press("y")
            assert screen.engine.told == [Edit(subtask="s03", title="scores+softmax", generation=0)]
            editor(monkeypatch, tmp_path, "sys.exit(1)")
            await screen.press("ctrl+g")
            assert "exited 1: nothing changed" in screen.notices

    asyncio.run(edit())


def test_a_kernel_is_edited_where_the_engine_watches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(monkeypatch, tmp_path, "text += '// mine'")

    async def edit() -> None:
        async with shown() as screen:
            screen.screen.planner.choose("s03")
            await screen.press("c")
            assert "no code yet" in screen.notices
            screen.screen.planner.choose("s02")
            await screen.press("c")

    asyncio.run(edit())
    path = tmp_path / ".stitch" / "work" / SESSION / "kernels" / "s02.cu"
    assert path.read_text() == CODE.replace("rms_norm_silu", "linear_gelu") + "// mine"


def test_copying_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clipboard, "tool", lambda: None)
    monkeypatch.setattr(StitchApp, "is_headless", False)
    monkeypatch.setenv("TMUX", "yes")
    written: list[str] = []

    async def copy() -> None:
        async with shown() as screen:
            assert screen.app._driver
            monkeypatch.setattr(screen.app._driver, "write", written.append)
            await screen.press("2", "y")
            assert "through the terminal (OSC 52)" in screen.notices
            code = screen.screen.copied
            sequence = next(text for text in written if "]52;" in text)
            assert sequence.startswith("\x1bPtmux;\x1b\x1b]52;c;")
            payload = sequence.partition("52;c;")[2].partition("\x07")[0]
            assert base64.b64decode(payload).decode() == code
            screen.app.copy("x" * clipboard.OSC_BYTES * 2)
            await screen.pilot.pause()
            assert "copied.txt" in screen.notices

    asyncio.run(copy())
    assert clipboard.save("again").read_text() == "again"


def test_a_theme_is_read_again_when_its_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "CONFIG" / "stitch" / "themes" / "mine.toml"
    path.parent.mkdir(parents=True)
    path.write_text('primary = "#112233"\n')

    async def change() -> None:
        async with shown(theme="mine") as screen:
            variables = screen.app.theme_variables
            assert variables["primary"] == "#112233"
            async with asyncio.timeout(60):
                while screen.app.theme_variables["primary"] != "#445566":
                    path.write_text('primary = "#445566"\n')  # again: the watch may begin after the first
                    await screen.pilot.pause(0.5)
            border = screen.screen.query_one("#planner").styles.border_top[1]
            assert border.hex == "#445566", "what is shown follows"
            path.write_text("primary = 1\n")
            async with asyncio.timeout(60):
                while "mine.toml" not in screen.notices:
                    await screen.pilot.pause(0.1)

    asyncio.run(change())


@pytest.fixture
def history(tmp_path: Path) -> History:
    """A session of two iterations in a repository."""
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-C", str(tmp_path)]
    (tmp_path / "model.py").write_text("x = 1\n")
    for words in (["init", "-q"], ["add", "model.py"], ["commit", "-qm", "mine"]):
        subprocess.run([*git, *words], check=True)
    history = History.open(tmp_path)
    tip = history.start_session(SESSION).sha
    for number in (1, 2):
        files = {"kernels/s01.cu": CODE.encode() + b"// %d\n" % number}
        entry = Iteration(
            session=SESSION, iteration=number, subtask="s01", kind=Kind.DRAFT, outcome=Outcome.KEPT,
            verdict=Category.CORRECT, best=True, title=f"way {number}",
        )  # fmt: skip
        tip = history.commit(SESSION, files, entry, expected=tip)
    return history


def test_an_iteration_is_applied_from_the_history(history: History, tmp_path: Path) -> None:
    async def look() -> None:
        async with shown() as screen:
            await screen.pilot.press("h")
            there = screen.app.screen
            assert isinstance(there, HistoryScreen)
            await settled(screen.app)
            await screen.until(lambda: "way 2" in screen.picture)
            assert there.query_one("#commits", DataTable).row_count == 2
            await screen.pilot.press("down")
            await settled(screen.app)
            await screen.pilot.press("a")
            await screen.until(lambda: "bring #1" in screen.picture)
            await screen.pilot.press("y")
            await settled(screen.app)
            await screen.pilot.press("m", "up")
            await settled(screen.app)
            await screen.until(lambda: "#2 against #1" in screen.picture)
            assert "// 2" in there.copied

    asyncio.run(look())
    assert (tmp_path / "stitched" / "kernels" / "s01.cu").read_text().endswith("// 1\n")


@pytest.mark.parametrize("size", [(60, 20), (120, 40)])
def test_a_history_without_a_session_says_so_as_long_as_it_stands(
    size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "-C", str(tmp_path), "init", "-q"], check=True)
    monkeypatch.chdir(tmp_path)

    async def look() -> None:
        async with shown(size=size) as screen:
            await screen.pilot.press("h")
            await settled(screen.app)
            assert "no session yet" in "".join(line.strip("│ ") for line in screen.picture.split("\n"))

    asyncio.run(look())


async def settled(app: StitchApp) -> None:
    """Wait for what git is asked."""
    for _ in range(3):
        await finished(app, "load", "compare", "change", "ask")
        await asyncio.sleep(0.05)
