"""The pictures of this folder, drawn from a recorded session: ``python docs/screens/draw.py [JOURNAL]``.

Run by hand after a change of the screen.  The recording is a session's ``events.jsonl``, compressed.
"""

import asyncio
import gzip
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from stitch_tui.agents.settings import Settings, UiSettings  # noqa: E402
from stitch_tui.app import StitchApp  # noqa: E402
from stitch_tui.link import JournalFeed  # noqa: E402
from stitch_tui.screens.session import SessionScreen  # noqa: E402
from stitch_tui.view.board import Board  # noqa: E402
from stitch_tui.view.drafts import Drafts  # noqa: E402

RECORDING = HERE / "session.jsonl.gz"
PICTURES: dict[str, tuple[tuple[int, int], str, list[str]]] = {
    "session": ((150, 44), "stitch-night", ["2"]),
    "light": ((120, 40), "stitch-day", ["2"]),
    "narrow": ((80, 24), "stitch-night", ["3"]),
    "profile": ((100, 30), "stitch-night", ["slash", *"profile", "enter"]),
    "help": ((100, 40), "stitch-night", ["question_mark"]),
}
"""Name -> size, theme, keys that are pressed."""


async def drawn(journal: Path, size: tuple[int, int], theme: str, keys: list[str]) -> str:
    """One picture, as SVG."""
    screen = SessionScreen(Board(), JournalFeed(journal), journal.parent, Drafts(None))
    app = StitchApp(screen, journal.parent, Settings(ui=UiSettings(theme=theme)))
    async with app.run_test(size=size) as pilot:
        await app.workers.wait_for_complete([w for w in app.workers if w.group == "feed"] or None)
        screen.planner.update_from(screen.board)
        screen.planner.choose(most_tried(screen.board))
        screen.draw()
        await pilot.press(*keys)
        await pilot.pause(1.0)
        return app.export_screenshot(title="stitch")


def most_tried(board: Board) -> str:
    """The subtask with the most attempts whose best is not its first: it has a diff to show."""
    return max(board.session.subtasks, key=lambda s: (s.best is not None, s.attempts)).id


def main() -> None:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDING
    data = source.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "events.jsonl"
        journal.write_bytes(gzip.decompress(data) if source.suffix == ".gz" else data)
        for name, (size, theme, keys) in PICTURES.items():
            (HERE / f"{name}.svg").write_text(asyncio.run(drawn(journal, size, theme, keys)))


if __name__ == "__main__":
    main()
