"""``stitch`` in a terminal: a window of tmux, or where that is not installed a terminal of the test's own."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from typing import Protocol

from engine_projects import Project

WAIT_S = 120.0
SIZE = (120, 40)
_KEYS = {"Enter": "\r", "Tab": "\t", "Escape": "\x1b", "C-q": "\x11"}
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?<>=]*[a-zA-Z]|\][^\x07]*\x07|[()=>].?|P[^\x1b]*\x1b\\)")


class Terminal(Protocol):
    """A window in which a person works."""

    def open(self, *words: str) -> int:
        """Start ``stitch`` with these words in a new window; its process id."""
        ...

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names."""
        ...

    def write(self, text: str) -> None:
        """Type a text."""
        ...

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds, `what`."""
        ...

    def shows(self, text: str) -> None:
        """Wait until a text is on the screen."""
        ...

    def close(self) -> None:
        """End what was opened."""
        ...


class Tmux:
    """Servers of tmux, each with one window."""

    def __init__(self, project: Project) -> None:
        self._project, self._servers = project, 0

    def __call__(self, *words: str) -> str:
        socket = f"stitch-test-{os.getpid()}-{self._servers}"
        command = ["tmux", "-L", socket, "-f", "/dev/null", *words]
        environment = self._project.environment
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    def open(self, *words: str) -> int:
        self._servers += 1
        viewer = f"exec '{sys.executable}' -m stitch_tui {' '.join(words)}"
        width, height = map(str, SIZE)
        place = ("-x", width, "-y", height, "-c", str(self._project.folder))
        self("new-session", "-d", "-s", "viewer", *place, viewer)
        return int(self("list-panes", "-t", "viewer", "-F", "#{pane_pid}"))

    def press(self, *keys: str) -> None:
        self("send-keys", "-t", "viewer", *keys)

    def write(self, text: str) -> None:
        self("send-keys", "-t", "viewer", "-l", text)

    @property
    def screen(self) -> str:
        return self("capture-pane", "-t", "viewer", "-p")

    def shows(self, text: str) -> None:
        self.until(lambda: text in self.screen, text)

    def until(self, holds: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + WAIT_S
        while not holds():
            assert time.monotonic() < end, f"{what}\n{self.screen}"
            time.sleep(0.1)

    def close(self) -> None:
        for server in range(1, self._servers + 1):
            kill = ["tmux", "-L", f"stitch-test-{os.getpid()}-{server}", "kill-server"]
            subprocess.run(kill, capture_output=True, check=False)


class OwnTerminal:
    """A pseudo-terminal; what was ever written to it counts as shown."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._seen = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._ours = -1

    def open(self, *words: str) -> int:
        self._ours, theirs = pty.openpty()
        width, height = SIZE
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "stitch_tui", *words],
            cwd=self._project.folder,
            env=self._project.environment | {"TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        return self._process.pid

    def press(self, *keys: str) -> None:
        for key in keys:
            self.write(_KEYS.get(key, key))

    def write(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def shows(self, text: str) -> None:
        self.until(lambda: text in self._seen, text)

    def until(self, holds: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + WAIT_S
        while not holds():
            assert time.monotonic() < end, f"{what}\n{self._seen[-4000:]}"
            if select.select([self._ours], [], [], 0.1)[0]:
                self._seen += _SEQUENCE.sub("", os.read(self._ours, 65536).decode(errors="replace"))

    def close(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            os.close(self._ours)
