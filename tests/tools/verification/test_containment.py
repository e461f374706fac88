"""What a candidate's process starts, holds and leaves behind; real processes that try to get away."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stitch_tui.tools.worker.abi import Call
from stitch_tui.tools.worker.candidate_fault import CandidateFault
from stitch_tui.tools.worker.channel import Channel
from stitch_tui.tools.worker.containment import Limits

RUNNER = """
import os, socket, sys, time
link = socket.socket(fileno=int(sys.argv[-1]))
lines = link.makefile("rw", buffering=1)
lines.readline(), lines.readline()
lines.write(f"ready 1 {os.getpid()}\\n")
for line in lines:
    words = line.split()
    if words[0] == "call":
        nonce = words[1]
    if words[0] == "go":
        exec(sys.argv[1])
        lines.write(f"done {nonce} 0 0 1.0 0 0\\n")
    if words[0] == "quit":
        break
"""
ESCAPES = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        os.environ.clear()
        open("escaped", "w").write(str(os.getpid()))
        os.rename("escaped", "ready")
        time.sleep(600)
    os._exit(0)
os.wait()
while not os.path.exists("ready"):
    time.sleep(0.01)
"""


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Channel]]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    arena = tmp_path / "arena"
    arena.write_bytes(bytes(4096))
    opened: list[Channel] = []

    def start(behaviour: str) -> Channel:
        argv = (sys.executable, "-c", RUNNER, behaviour)
        opened.append(Channel(argv, arena=f"arena file {arena} 4096", deadline_s=20.0))
        return opened[-1]

    yield start
    for channel in opened:
        with contextlib.suppress(FileNotFoundError):  # closed by the test itself
            channel.close()


def fault_of(channel: Channel) -> CandidateFault:
    with pytest.raises(CandidateFault) as caught:
        channel.call("run", Call())
    return caught.value


def test_a_process_that_left_the_session_ends_with_its_candidate(
    runner: Callable[[str], Channel], tmp_path: Path
) -> None:
    channel = runner(ESCAPES)
    assert channel.call("run", Call()).rc == 0
    escaped = int(next(tmp_path.glob("stitch-run-*/work/ready")).read_text())
    os.kill(escaped, 0)
    channel.close()
    with pytest.raises(ProcessLookupError):
        os.kill(escaped, 0)


def test_a_candidate_that_holds_too_much_memory_is_ended_and_named(
    runner: Callable[[str], Channel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Limits, "now", classmethod(lambda cls: cls(memory_bytes=200 << 20)))
    fault = fault_of(runner("held = b'x' * (300 << 20); time.sleep(600)"))
    assert fault.category == "out_of_memory_host"
    assert "GiB" in fault.message


def test_a_candidate_that_multiplies_is_ended_and_named(
    runner: Callable[[str], Channel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Limits, "now", classmethod(lambda cls: cls(1 << 40, processes=8)))
    fault = fault_of(runner("os.fork(), os.fork(), os.fork(), os.fork(); time.sleep(600)"))
    assert fault.category == "hack_suspected"
    assert "8 processes" in fault.message


def test_a_candidate_that_fills_the_disk_is_ended_and_named(
    runner: Callable[[str], Channel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Limits, "now", classmethod(lambda cls: cls(1 << 40, disk_bytes=1 << 20)))
    writes = "[open(str(i), 'wb').write(bytes(1 << 19)) for i in range(8)]; time.sleep(600)"
    assert "MiB of files" in fault_of(runner(writes)).message


def test_a_slow_honest_candidate_is_left_alone(runner: Callable[[str], Channel]) -> None:
    channel = runner("import threading; threading.Event().wait(0.7)")
    started = time.monotonic()
    assert channel.call("run", Call()).rc == 0
    assert time.monotonic() - started >= 0.7


def test_a_runner_that_is_gone_is_no_fault_of_the_candidates(tmp_path: Path) -> None:
    with pytest.raises(CandidateFault) as caught:
        Channel((str(tmp_path / "deleted"),), arena="arena file x 0")
    assert caught.value.category == "environment"
