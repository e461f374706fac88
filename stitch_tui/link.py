"""The line to the engine: events go into the board in slices that leave the screen fluid, commands come back.

A lost connection is taken up again from the last event that was seen, for as long as the engine runs.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from time import thread_time
from typing import Protocol, TypeVar

from stitch_tui.agents import journal, presence
from stitch_tui.agents.commands import Attach, Command, Reply
from stitch_tui.agents.events import Event, SessionFinished
from stitch_tui.agents.presence import Engine
from stitch_tui.session import Connection, connected
from stitch_tui.tools.errors import StitchError, UsageError
from stitch_tui.view.board import Board

SLICE_S = 0.006
"""Events are taken for this much processor time before the screen has its turn."""
REST_S = 0.004
AGAIN_S = 1.0
"""Between two attempts to connect."""
T = TypeVar("T")
Make = Callable[[int], Command]
"""Makes a command for a generation of the session."""


class Feed(Protocol):
    """Where the session's events come from, and where commands go."""

    trouble: str
    """Why nothing comes; empty while all is well."""

    async def run(self, board: Board) -> None:
        """Fill the board until the session ends or nothing more can come."""
        ...

    async def send(self, make: Make, generation: int) -> Reply:
        """Have a command carried out.

        Raises:
            UsageError: there is nobody to carry it out.
        """
        ...


class EngineFeed:
    """A running engine's stream."""

    def __init__(self, engine: Engine, project: Path) -> None:
        self._engine, self._project = engine, project
        self._connection: Connection | None = None
        self._asked: deque[asyncio.Future[Reply]] = deque()
        self.trouble = ""

    async def run(self, board: Board) -> None:
        while not board.finished:
            try:
                async with connected(self._engine) as connection:
                    await self._attached(connection, board)
            except (StitchError, OSError) as error:
                self.trouble = str(error)
            self._lost()
            if board.finished or not await self._found_again():
                break
        if not board.finished:
            self.trouble = "the engine was killed; go on with: stitch --auto --resume"

    async def send(self, make: Make, generation: int) -> Reply:
        if self._connection is None:
            raise UsageError("the engine cannot be reached", why=self.trouble)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._asked.append(future)
        self._connection.post(make(generation))
        return await future

    async def _attached(self, connection: Connection, board: Board) -> None:
        self._connection, self.trouble = connection, ""
        attaching: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._asked.append(attaching)
        connection.post(Attach(since=board.seq))
        async for line in _in_slices(connection.lines()):
            if isinstance(line, Reply):
                self._replied(line)
            else:
                board.add(line)
                if isinstance(line, SessionFinished):
                    return

    def _replied(self, reply: Reply) -> None:
        """Replies come in the order of the commands."""
        if self._asked:
            future = self._asked.popleft()
            if not future.done():
                future.set_result(reply)

    def _lost(self) -> None:
        self._connection = None
        while self._asked:
            future = self._asked.popleft()
            if not future.done():
                future.set_exception(UsageError("the connection to the engine was lost"))
                future.exception()  # nobody may wait for it

    async def _found_again(self) -> bool:
        """Is the engine there after a moment?"""
        await asyncio.sleep(AGAIN_S)
        found = presence.running(self._project)
        if found is None:
            return False
        if found.session in ("", self._engine.session):
            self._engine = found
        return found.session in ("", self._engine.session)


class JournalFeed:
    """A session as its journal left it: to look at, not to steer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.trouble = ""

    async def run(self, board: Board) -> None:
        try:
            async for event in _in_slices(_read(self._path)):
                board.add(event)
        except StitchError as error:
            self.trouble = str(error)
            return
        if not board.finished:
            self.trouble = "as its journal stood: nothing is followed here"

    async def send(self, make: Make, generation: int) -> Reply:
        raise UsageError("this is a journal", advice="go on with the session: stitch --auto --resume")


async def _read(path: Path) -> AsyncIterator[Event]:
    for event in journal.read(path):
        yield event


async def _in_slices(lines: AsyncIterator[T]) -> AsyncIterator[T]:
    """The same lines, with a rest after each slice of work."""
    until = thread_time() + SLICE_S
    async for line in lines:
        yield line
        if thread_time() >= until:
            await asyncio.sleep(REST_S)
            until = thread_time() + SLICE_S
