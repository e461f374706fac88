"""``stitch --plain``: a running session as lines that are only ever added, steered by typed lines.

For screen readers, dumb terminals and scripts: the stream of ``stitch attach`` with the commands of the
session screen's composer.
"""

import asyncio
import sys
import threading
from collections.abc import Callable, Iterable

from stitch_tui.agents.events import Event
from stitch_tui.agents.state import SubtaskState
from stitch_tui.headless import PlainPrinter
from stitch_tui.link import Feed
from stitch_tui.plain_text import columns, count, one_line
from stitch_tui.session import Gone
from stitch_tui.tools.errors import StitchError, UsageError
from stitch_tui.view import orders
from stitch_tui.view.board import Board
from stitch_tui.view.orders import BY_NAME, ENTRIES, Order
from stitch_tui.view.wording import GLYPH, headline

LEAVE = "detached; the run goes on (stitch, stitch stop)"
ELSEWHERE = {
    "edit": "stitch ctl edit ID",
    "add": "stitch ctl add TITLE NODE...",
    "plan": "stitch ctl edit, add, reorder, skip",
    "code": "stitch edit [ID]",
    "history": "stitch log, show, diff, restore, apply, export",
    "profile": "stitch view --json",
    "iterations": "stitch log",
}
"""Commands that need the screen, and what does the same from the command line."""


class Transcript(Board):
    """A board that says what is new."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__()
        self._say = say
        self._print = PlainPrinter(live=False)
        self._waiting: list[str] = []

    def add(self, event: Event) -> None:
        before = self.changes
        super().add(event)
        if self.changes == before:
            return
        self._print(event)
        waiting = [subtask.id for subtask in self.proposed]
        if waiting and waiting != self._waiting:
            self._say(f"? {', '.join(waiting)} to decide: approve [ID], reject ID [WHY], skip ID, help")
        self._waiting = waiting


class Linear:
    """One viewer without a screen.

    Args:
        lines: where a person's lines come from; at its end the watching goes on.
    """

    def __init__(self, feed: Feed, lines: Iterable[str] | None = None) -> None:
        self._feed, self._lines = feed, lines or sys.stdin
        self._board = Transcript(self._say)
        self._left = asyncio.Event()

    async def run(self) -> int:
        """Print and obey until the session ends or the viewer leaves; the process's exit code."""
        typed: asyncio.Queue[str] = asyncio.Queue()
        self._read_into(typed)
        watching = asyncio.create_task(self._feed.run(self._board))
        obeying = asyncio.create_task(self._obey(typed))
        leaving = asyncio.create_task(self._left.wait())
        await asyncio.wait((watching, leaving), return_when=asyncio.FIRST_COMPLETED)
        for task in (watching, obeying, leaving):
            task.cancel()
        await asyncio.gather(watching, obeying, leaving, return_exceptions=True)
        if self._left.is_set():
            self._say(LEAVE)
            return 0
        if self._feed.trouble:
            raise Gone
        return self._board.finished.exit_code if self._board.finished else 1

    def _read_into(self, typed: "asyncio.Queue[str]") -> None:
        """Lines come from a thread that nobody waits for: reading a terminal cannot be cancelled."""
        loop = asyncio.get_running_loop()

        def read() -> None:
            for line in self._lines:
                if loop.is_closed():
                    return
                loop.call_soon_threadsafe(typed.put_nowait, line)

        threading.Thread(target=read, daemon=True).start()

    async def _obey(self, typed: "asyncio.Queue[str]") -> None:
        while True:
            line = (await typed.get()).strip()
            if not line:
                continue
            try:
                self._say(await self._done(line))
            except (StitchError, ValueError) as error:
                self._say(f"✗ {error}")

    async def _done(self, line: str) -> str:
        """Do what a line says; the answer.

        Raises:
            StitchError, ValueError: it cannot be done.
        """
        order = understood(line, self._board)
        if order.make is None:
            return self._shown(order)
        reply = await self._feed.send(order.make, self._board.session.generation)
        if not reply.ok:
            raise UsageError(reply.text)
        return f"takes effect {reply.text}"

    def _shown(self, order: Order) -> str:
        name = next(entry.name for entry in ENTRIES if entry.action == order.action)
        match name:
            case "quit":
                self._left.set()
                return "leaving"
            case "help":
                return "\n".join(
                    columns((f"{entry.name} {entry.words}".strip(), entry.text) for entry in USABLE)
                )
            case "log":
                return (
                    "\n".join(f"{note.kind}: {one_line(note.sentence)}" for note in self._board.notes)
                    or "nothing yet"
                )
            case "report":
                return standing(self._board)
        raise UsageError(
            f"{name} needs the screen", advice=f"from another terminal: {ELSEWHERE.get(name, 'stitch')}"
        )

    def _say(self, text: str) -> None:
        for line in text.split("\n"):
            print(one_line(line), file=sys.stderr, flush=True)


USABLE = [
    entry for entry in ENTRIES if not entry.action or entry.name in ("stop", "log", "report", "help", "quit")
]


def understood(line: str, board: Board) -> Order:
    """The order in a typed line: a command, with or without its slash, or ``3: words`` for one subtask.

    Raises:
        UsageError: it is neither; words without a subtask are taken for nothing.
    """
    name = line.split()[0].removeprefix("/")
    active = board.active.id if board.active else ""
    if name == "stop":
        return Order(orders.stop(line.partition(" ")[2].strip()))
    if name in BY_NAME:
        return orders.read(f"/{line.removeprefix('/')}", board.session, active)
    if line.startswith("/") or not orders.TARGET.match(line):
        raise UsageError(f"no command {name}", advice="`help` lists them; words for a Coder begin with `3:`")
    return orders.read(line, board.session, "")


def standing(board: Board) -> str:
    """How the run stands, a line each for phase, subtasks and program."""
    session = board.session
    rows = [
        (
            subtask.id,
            f"{GLYPH[subtask.state]} {subtask.state}",
            headline(best.verdict if (best := board.best(subtask.id)) else None),
            count(subtask.attempts, "attempt"),
            subtask.title,
        )
        for subtask in session.subtasks
    ]
    whole = [f"program  {headline(session.program)}"] if session.program else []
    left = sum(subtask.state is SubtaskState.PROPOSED for subtask in session.subtasks)
    waits = f", {left} to decide" if left else ""
    return "\n".join([f"{session.id}: {board.phase}{waits}", *(columns(rows) if rows else ()), *whole])
