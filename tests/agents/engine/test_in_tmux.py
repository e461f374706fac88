"""In tmux for real: a run is approved, redirected, its viewer killed and started again, the run stopped."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from engine_projects import Project, of_type, until

from stitch_tui.agents import journal
from stitch_tui.agents.events import Decision
from stitch_tui.tools.iteration import Outcome

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]
WAIT_S = 120.0


@dataclass
class Tmux:
    """Servers of tmux, each with one window, in which ``stitch`` runs."""

    project: Project
    servers: int = 0

    @property
    def socket(self) -> str:
        return f"stitch-test-{os.getpid()}-{self.servers}"

    def __call__(self, *words: str) -> str:
        command = ["tmux", "-L", self.socket, "-f", "/dev/null", *words]
        done = subprocess.run(
            command, env=self.project.environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    def open(self) -> int:
        """Start ``stitch`` in a new window; its process id."""
        self.servers += 1
        viewer = f"exec '{sys.executable}' -m stitch_tui"
        size = ("-x", "120", "-y", "40", "-c", str(self.project.folder))
        self("new-session", "-d", "-s", "viewer", *size, viewer)
        self.shows("Planner")
        return int(self("list-panes", "-t", "viewer", "-F", "#{pane_pid}"))

    def press(self, *keys: str) -> None:
        self("send-keys", "-t", "viewer", *keys)

    def shows(self, text: str) -> None:
        self.until(lambda: text in self("capture-pane", "-t", "viewer", "-p"), text)

    def until(self, holds: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + WAIT_S
        while not holds():
            assert time.monotonic() < end, f"{what}\n{self('capture-pane', '-t', 'viewer', '-p')}"
            time.sleep(0.1)


@pytest.fixture
def tmux(project: Project) -> Iterator[Tmux]:
    made = Tmux(project)
    yield made
    subprocess.run(["tmux", "-L", made.socket, "kill-server"], capture_output=True, check=False)


def test_a_run_is_steered_left_and_found_again(project: Project, tmux: Tmux) -> None:
    engine = project.start(settings={"autonomy": {"mode": "ask-plan"}}, hang=[1, 2])
    until(engine, of_type("plan.proposed"))

    viewer = tmux.open()
    tmux.shows("to decide")
    time.sleep(0.6)  # a proposal must have been on screen before a key decides on it
    tmux.press("A")
    tmux.shows("approve")
    tmux.press("y")
    until(engine, of_type("code.written"))
    tmux.press("R")
    tmux.press("-l", "one warp a row")
    tmux.shows("/now one warp a row")
    tmux.press("Enter")
    until(engine, of_type("code.written"))
    tmux.shows("↪ redirected")
    os.kill(viewer, signal.SIGKILL)
    assert engine.poll() is None, "the run goes on without its viewer"

    viewer = tmux.open()
    tmux.shows("↪ redirected")
    tmux.press("C-q")
    tmux.shows("detach: it goes on")
    tmux.press("Escape")
    tmux.until(lambda: "leave the run?" not in tmux("capture-pane", "-t", "viewer", "-p"), "Esc goes back")
    tmux.press("x")
    tmux.shows("stop, keep everything")
    tmux.press("k")
    engine.communicate(timeout=WAIT_S)
    tmux.shows("stopped")
    tmux.press("C-q")
    tmux.until(lambda: not os.path.exists(f"/proc/{viewer}"), "the viewer ends")

    decided = [event.action for event in journal.read(project.journal) if isinstance(event, Decision)]
    assert decided == ["approve", "redirect", "stop"]
    assert [i.outcome for i in project.session.iterations[:2]] == [Outcome.REDIRECTED, Outcome.CANCELLED]
