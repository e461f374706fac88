"""In tmux for real: a run is approved, redirected, its viewer killed and started again, the run stopped."""

import os
import shutil
import signal
import time
from collections.abc import Iterator

import pytest
from engine_projects import Project, of_type, until
from terminals import WAIT_S, Tmux

from stitch_tui.agents import journal
from stitch_tui.agents.events import Decision
from stitch_tui.tools.iteration import Outcome

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


@pytest.fixture
def tmux(project: Project) -> Iterator[Tmux]:
    made = Tmux(project)
    yield made
    made.close()


def test_a_run_is_steered_left_and_found_again(project: Project, tmux: Tmux) -> None:
    engine = project.start(settings={"autonomy": {"mode": "ask-plan"}}, hang=[1, 2])
    until(engine, of_type("plan.proposed"))

    viewer = tmux.open()
    tmux.shows("Planner")
    tmux.shows("to decide")
    time.sleep(0.6)  # a proposal must have been on screen before a key decides on it
    tmux.press("A")
    tmux.shows("approve")
    tmux.press("y")
    until(engine, of_type("code.written"))
    tmux.press("R")
    tmux.write("one warp a row")
    tmux.shows("/now one warp a row")
    tmux.press("Enter")
    until(engine, of_type("code.written"))
    tmux.shows("↪ redirected")
    os.kill(viewer, signal.SIGKILL)
    assert engine.poll() is None, "the run goes on without its viewer"

    viewer = tmux.open()
    tmux.shows("Planner")
    tmux.shows("↪ redirected")
    tmux.press("C-q")
    tmux.shows("detach: it goes on")
    tmux.press("Escape")
    tmux.until(lambda: "leave the run?" not in tmux.screen, "Esc goes back")
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
