"""Viewers never hold the engine up: who reads slowly gets the file, and the order stays."""

import asyncio
import socket
from pathlib import Path

import pytest

from stitch_tui.agents import server
from stitch_tui.agents.commands import Attach, Command, Reply
from stitch_tui.agents.events import CoderDelta, Event, Warned, parse
from stitch_tui.agents.journal import Journal
from stitch_tui.agents.server import Server


def accepted(command: Command) -> Reply:
    return Reply(ok=True, text="now", generation=0, seq=0)


class Served:
    """A journal with a server, and viewers of it."""

    def __init__(self, folder: Path) -> None:
        self.journal = Journal(folder / "events.jsonl", "x")
        self.server = Server(folder / "events.jsonl", accepted)
        self._address = str(folder / "s")

    async def start(self) -> None:
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(self._address)
        await self.server.start(bound)

    def emit(self, event: Event) -> None:
        self.server.publish(self.journal.append(event))

    async def attach(self, since: int = 0) -> asyncio.StreamReader:
        reader, writer = await asyncio.open_unix_connection(self._address, limit=1 << 26)
        writer.write(Attach(since=since).model_dump_json().encode() + b"\n")
        assert b'"reply"' in await reader.readline()
        self._kept = writer
        return reader


async def events_of(reader: asyncio.StreamReader) -> list[Event]:
    return [parse(line) async for line in reader]


def test_a_viewer_that_reads_late_misses_deltas_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "FAREWELL_S", 60)
    many = 3 * server.BACKLOG

    async def scenario() -> list[Event]:
        served = Served(tmp_path)
        await served.start()
        served.emit(Warned(text="first"))
        reader = await served.attach()
        for number in range(many):
            served.emit(Warned(text=f"{number} " + "x" * 2000))
            served.emit(CoderDelta(subtask="s01", text="y" * 2000))
        reading = asyncio.create_task(events_of(reader))
        await asyncio.sleep(0)
        served.emit(Warned(text="last"))
        await served.server.close()
        return await reading

    seen = [event for event in asyncio.run(scenario()) if event.seq]
    assert [event.seq for event in seen] == list(range(1, many + 3))


def test_a_viewer_that_never_reads_does_not_keep_the_engine_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "FAREWELL_S", 0.1)

    async def scenario() -> int:
        served = Served(tmp_path)
        await served.start()
        await served.attach()
        for _ in range(5000):
            served.emit(Warned(text="x" * 2000))
        await served.server.close()
        return served.journal.seq

    assert asyncio.run(scenario()) == 5000


def test_streamed_text_reaches_a_viewer_that_keeps_up(tmp_path: Path) -> None:
    async def scenario() -> list[str]:
        served = Served(tmp_path)
        await served.start()
        served.emit(Warned(text="first"))
        reader = await served.attach()
        seen = [parse(await reader.readline())]
        served.emit(CoderDelta(subtask="s01", text="__global__"))
        seen.append(parse(await reader.readline()))
        served.emit(Warned(text="second"))
        seen.append(parse(await reader.readline()))
        await served.server.close()
        return [event.text for event in seen]

    assert asyncio.run(scenario()) == ["first", "__global__", "second"]
