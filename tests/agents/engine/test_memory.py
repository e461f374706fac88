"""The engine's memory does not grow with the number of events, viewers or not."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from stitch_tui.agents import events, journal
from stitch_tui.agents.commands import Attach, Command, Reply
from stitch_tui.agents.journal import Journal
from stitch_tui.agents.record import Record
from stitch_tui.agents.server import Server

EVENTS = 100_000
SETTLED = 20_000
"""Events after which everything that is kept for good has been made."""
GROWTH_BYTES = 8 << 20


def resident() -> int:
    """Bytes that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def follow(address: str, *, reads: bool) -> None:
    """A viewer; one that does not read is dropped some time or at the end."""
    reader, writer = await asyncio.open_unix_connection(address)
    writer.write(Attach(since=0).model_dump_json().encode() + b"\n")
    while reads and await reader.read(1 << 16):
        pass
    if not reads:
        await asyncio.Event().wait()


async def long_run(folder: Path) -> tuple[int, int]:
    """What the process holds after `SETTLED` events and after all of them."""

    def accepted(_: Command) -> Reply:
        return Reply(ok=True, text="now", generation=0, seq=record.seq)

    file = Journal(folder / "events.jsonl", "x")
    server = Server(folder / "events.jsonl", accepted)
    record = Record(file, server.publish)
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(str(folder / "s"))
    await server.start(bound)
    viewers = [asyncio.create_task(follow(str(folder / "s"), reads=reads)) for reads in (True, True, False)]
    await asyncio.sleep(0)
    settled = 0
    for number in range(EVENTS):
        record.emit(events.Warned(text=f"{number} " + "x" * 200))
        record.emit(events.CoderDelta(subtask="s01", text="y" * 200))
        if number % 50 == 0:
            await asyncio.sleep(0)
        if number == SETTLED:
            settled = resident()
    held = resident()
    for viewer in viewers[2:]:
        viewer.cancel()
    await server.close()
    return settled, held


@pytest.mark.slow
def test_a_hundred_thousand_events_leave_the_memory_as_it_was(tmp_path: Path) -> None:
    settled, held = asyncio.run(long_run(tmp_path))
    assert sum(1 for _ in journal.read(tmp_path / "events.jsonl")) == EVENTS
    print(f"{settled / 2**20:.1f} MiB after {SETTLED} events, {held / 2**20:.1f} MiB after {EVENTS}")
    assert held - settled < GROWTH_BYTES
