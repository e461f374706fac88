"""In a real terminal: it is as it was after every way to leave, and nothing of ours stays behind."""

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from shown_sessions import SESSION, emulated, numbered

from stitch_tui.agents import journal

ROOT = Path(__file__).resolve().parents[2]
RESTORED = (b"\x1b[?1049l", b"\x1b[?1000l", b"\x1b[?2004l", b"\x1b[?25h")
"""Alternate screen, mouse and bracketed paste off, the cursor back."""
pytestmark = pytest.mark.slow


@dataclass
class Terminal:
    """A terminal with ``stitch`` in it."""

    process: subprocess.Popen[bytes]
    ours: int
    theirs: int
    seen: bytes = b""
    attributes: list[object] = field(default_factory=list)

    def until(self, done: Callable[[], bool], seconds: float = 120.0) -> None:
        end = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < end, self.seen[-2000:]
            if select.select([self.ours], [], [], 0.05)[0]:
                self.seen += os.read(self.ours, 65536)

    def leave(self, act: Callable[[], object]) -> bytes:
        """What was written from `act` to the end."""
        before = len(self.seen)
        act()
        self.until(lambda: self.process.poll() is not None)
        while select.select([self.ours], [], [], 0.2)[0]:
            self.seen += os.read(self.ours, 65536)
        return self.seen[before:]


@pytest.fixture
def terminal(tmp_path: Path) -> object:
    path = journal.path_of(tmp_path, SESSION)
    path.parent.mkdir(parents=True)
    path.write_text("".join(event.model_dump_json() + "\n" for event in numbered(emulated())))
    ours, theirs = pty.openpty()
    attributes = termios.tcgetattr(theirs)
    process = subprocess.Popen(
        [sys.executable, "-m", "stitch_tui", "view"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    shown = Terminal(process, ours, theirs, attributes=attributes)
    shown.until(lambda: b"rms_norm" in shown.seen)
    yield shown
    if process.poll() is None:
        process.kill()
        process.wait()
    os.close(shown.ours)
    os.close(shown.theirs)


@pytest.mark.parametrize(("received", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_restores_the_terminal(terminal: Terminal, received: int, code: int) -> None:
    written = terminal.leave(lambda: terminal.process.send_signal(received))
    assert terminal.process.returncode == code
    assert all(sequence in written for sequence in RESTORED)
    assert termios.tcgetattr(terminal.theirs) == terminal.attributes


def test_leaving_a_session_that_is_over_asks_nothing(terminal: Terminal) -> None:
    written = terminal.leave(lambda: os.write(terminal.ours, b"\x11"))
    assert terminal.process.returncode == 0
    assert all(sequence in written for sequence in RESTORED)


def test_a_terminal_that_goes_without_a_signal_ends_the_viewer(terminal: Terminal) -> None:
    os.close(terminal.theirs)
    os.close(terminal.ours)
    assert terminal.process.wait(timeout=60) == 129
    terminal.ours, terminal.theirs = pty.openpty()


def test_suspending_gives_the_terminal_back_and_takes_it_again(terminal: Terminal) -> None:
    before = len(terminal.seen)
    os.write(terminal.ours, b"\x1a")
    terminal.until(lambda: b"\x1b[?1049l" in terminal.seen[before:])
    stopped = Path(f"/proc/{terminal.process.pid}/stat")
    terminal.until(lambda: stopped.read_text().rpartition(")")[2].split()[0] == "T")
    os.killpg(terminal.process.pid, signal.SIGCONT)
    terminal.until(lambda: b"\x1b[?1049h" in terminal.seen[before:])
    terminal.leave(lambda: os.write(terminal.ours, b"\x11"))
    assert terminal.process.returncode == 0
