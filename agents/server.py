"""The engine's socket: viewers get the journal and then the live stream, and send commands.

A viewer that reads slowly is sent the journal file from where it stopped, and misses streamed text; one
that reads nothing for `STUCK_S` is dropped.  The engine waits for none of them.
"""

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from stitch_tui.agents.commands import Attach, Command, Reply, parse
from stitch_tui.agents.events import CoderDelta, Event

BACKLOG = 1000
"""Lines that wait for one viewer before it is sent the file instead."""
STUCK_S = 30.0
FAREWELL_S = 2.0
LINE_BYTES = 1 << 20
"""Longest command."""


class Server:
    """Serves one session.

    Args:
        journal: the session's file of events; line n holds event n.
        carry_out: does a command and answers at once.
    """

    def __init__(self, journal: Path, carry_out: Callable[[Command], Reply]) -> None:
        self._journal, self._carry_out = journal, carry_out
        self._server: asyncio.Server | None = None
        self._viewers: set[_Viewer] = set()
        self._connections: dict[asyncio.Task[None], _Viewer] = {}

    async def start(self, bound: socket.socket) -> None:
        """Listen on a bound socket."""
        self._server = await asyncio.start_unix_server(self._serve, sock=bound, limit=LINE_BYTES)

    def publish(self, event: Event) -> None:
        """Pass an event, which is in the journal already, to all viewers."""
        if not self._viewers:
            return
        line = event.model_dump_json().encode() + b"\n"
        for viewer in self._viewers:
            viewer.offer(0 if isinstance(event, CoderDelta) else event.seq, line)

    async def close(self) -> None:
        """Send the viewers what they still lack, as far as they read it, and close."""
        if self._server is None:
            return
        self._server.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                await asyncio.gather(*(viewer.finish() for viewer in list(self._viewers)))
        for viewer in self._connections.values():
            viewer.drop()
        if self._connections:
            await asyncio.wait(self._connections, timeout=FAREWELL_S)
        for viewer in self._connections.values():
            viewer.abort()
        if self._connections:
            await asyncio.wait(self._connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        viewer, task = _Viewer(self._journal, writer), asyncio.current_task()
        assert task
        self._connections[task] = viewer
        try:
            while line := await reader.readline():
                self._answer(viewer, line)
                await writer.drain()
        except (OSError, ValueError):
            pass  # gone, or a line without an end
        finally:
            viewer.drop()
            self._viewers.discard(viewer)
            del self._connections[task]

    def _answer(self, viewer: "_Viewer", line: bytes) -> None:
        try:
            command = parse(line)
        except ValidationError as fault:
            first = fault.errors()[0]
            where = ".".join(map(str, first["loc"]))
            viewer.write(Reply(ok=False, text=f"not a command: {where}: {first['msg']}", generation=0, seq=0))
            return
        reply = self._carry_out(command)
        viewer.write(reply)
        if isinstance(command, Attach) and viewer not in self._viewers:
            self._viewers.add(viewer)
            viewer.begin(min(command.since, reply.seq))


class _Viewer:
    """One connection; `_sent` is the last event that it was sent."""

    def __init__(self, journal: Path, writer: asyncio.StreamWriter) -> None:
        self._journal, self._writer = journal, writer
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._wake = asyncio.Event()
        self._since, self._sent, self._offset, self._line = 0, 0, 0, 0
        self._behind, self._finishing = True, False
        self._pump: asyncio.Task[None] | None = None

    def begin(self, since: int) -> None:
        """Send every event after `since`, from now on for ever."""
        self._sent = since
        self._pump = asyncio.create_task(self._run())
        self._wake.set()

    def offer(self, seq: int, line: bytes) -> None:
        """Take a line of the stream; `seq` 0 is streamed text, which may be lost."""
        if self._behind or len(self._waiting) >= BACKLOG:
            if seq:
                self._behind = True
                self._waiting.clear()
        else:
            self._waiting.append((seq, line))
        self._wake.set()

    def write(self, reply: Reply) -> None:
        """Answer a command, between two lines of the stream."""
        self._writer.write(reply.model_dump_json().encode() + b"\n")

    async def finish(self) -> None:
        """Send what there is, then end."""
        self._finishing = True
        self._wake.set()
        if self._pump:
            await asyncio.gather(self._pump, return_exceptions=True)

    def drop(self) -> None:
        """Close the connection once what was written is read."""
        if self._pump:
            self._pump.cancel()
        self._writer.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()

    async def _run(self) -> None:
        try:
            while True:
                while self._behind:
                    await self._catch_up()
                while self._waiting and not self._behind:
                    seq, line = self._waiting.popleft()
                    if seq == 0 or seq > self._sent:
                        self._sent = seq or self._sent
                        await self._send(line)
                if self._behind:
                    continue
                if self._finishing:
                    return
                self._wake.clear()
                await self._wake.wait()
        except (OSError, TimeoutError):
            self.abort()

    async def _catch_up(self) -> None:
        """Send from the file; not behind any more once its end is reached without waiting."""
        with self._journal.open("rb") as lines:
            lines.seek(self._offset)
            while line := lines.readline():
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                self._line += 1
                if self._line > self._sent:
                    self._sent = self._line
                    await self._send(line)
        self._behind = False

    async def _send(self, line: bytes) -> None:
        self._writer.write(line)
        async with asyncio.timeout(STUCK_S):
            await self._writer.drain()
