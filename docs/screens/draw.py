"""The pictures of this folder, drawn from a recorded session.

``python docs/screens/draw.py`` draws them, after a change of the screen; a test compares.  With a session's
``events.jsonl`` as its argument it takes that for the recording first, without what tells of a machine.
"""

import asyncio
import gzip
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from stitch_tui.agents.journal import read  # noqa: E402
from stitch_tui.agents.settings import Settings, UiSettings  # noqa: E402
from stitch_tui.app import StitchApp  # noqa: E402
from stitch_tui.link import JournalFeed  # noqa: E402
from stitch_tui.screens.session import SessionScreen  # noqa: E402
from stitch_tui.view.board import Board  # noqa: E402
from stitch_tui.view.drafts import Drafts  # noqa: E402

RECORDING = HERE / "session.jsonl.gz"
LEFT_OUT = {"artifact": "", "command": [], "log": "", "numbers": {}}
"""Fields of builds and verdicts that hold paths or fill the file, and what stands in their place."""
PICTURES: dict[str, tuple[tuple[int, int], str, list[str]]] = {
    "session": ((150, 44), "stitch-night", ["2"]),
    "light": ((120, 40), "stitch-day", ["2"]),
    "narrow": ((80, 24), "stitch-night", ["3"]),
    "profile": ((100, 30), "stitch-night", ["slash", *"profile", "enter"]),
}
"""Name -> size, theme, keys that are pressed."""


def recorded(journal: Path) -> None:
    """Take a session's journal for the recording."""
    data = gzip.decompress(journal.read_bytes()) if journal.suffix == ".gz" else journal.read_bytes()
    lines = [json.dumps(_shared(json.loads(line)), separators=(",", ":")) for line in data.splitlines()]
    RECORDING.write_bytes(gzip.compress("\n".join([*lines, ""]).encode(), 9, mtime=0))


def _shared(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: LEFT_OUT[key] if key in LEFT_OUT else _shared(item) for key, item in value.items()}
    return [_shared(item) for item in value] if isinstance(value, list) else value


async def drawn(journal: Path, size: tuple[int, int], theme: str, keys: list[str]) -> str:
    """One picture, as SVG: the subtask that was tried most often, then what the keys do."""
    board = Board()
    for event in read(journal):  # all of it before anything is drawn: what comes in between has its widths
        board.add(event)
    screen = SessionScreen(board, JournalFeed(journal), journal.parent, Drafts(None))
    app = StitchApp(screen, journal.parent, Settings(ui=UiSettings(theme=theme)))
    async with app.run_test(size=size) as pilot:
        screen.draw()
        subtasks = screen.board.session.subtasks
        screen.planner.choose(max(subtasks, key=lambda s: (s.best is not None, s.attempts)).id)
        await pilot.press(*keys)
        await pilot.pause(1.0)
        return app.export_screenshot(title="stitch")


def pictures() -> Iterator[tuple[Path, str]]:
    """Each picture's file and what stands in it when it is drawn now."""
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "events.jsonl"
        journal.write_bytes(gzip.decompress(RECORDING.read_bytes()))
        for name, (size, theme, keys) in PICTURES.items():
            yield HERE / f"{name}.svg", asyncio.run(drawn(journal, size, theme, keys))


def main() -> None:
    for journal in sys.argv[1:2]:
        recorded(Path(journal))
    for path, picture in pictures():
        path.write_text(picture)


if __name__ == "__main__":
    main()
