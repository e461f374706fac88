"""What a race of parameters may cost a session: its order, and never the session."""

import subprocess

from engine_projects import Project, send, until

from stitch_tui.agents import commands, events
from stitch_tui.agents.events import Event
from stitch_tui.agents.state import Session, SubtaskState
from stitch_tui.tools.iteration import Outcome

TIMED = {"timed": [], "settings": {"autonomy": {"mode": "auto"}, "limits": {"iterations": 2}}}


def raced(printed: list[Event]) -> list[events.Raced]:
    return [event for event in printed if isinstance(event, events.Raced)]


def first_of(session: Session, subtask: str) -> str:
    """The strategy of a subtask's first attempt."""
    candidate = session.attempts_of(subtask)[0].candidate
    assert candidate
    return candidate.strategy


def ended(project: Project, engine: subprocess.Popen[str]) -> tuple[int, Session]:
    """Exit code and state of a run that was left to itself."""
    _, err = engine.communicate(timeout=200)
    assert "Traceback" not in err, err
    return engine.returncode, project.session


def begun(event: Event) -> bool:
    """Has the work on the first subtask begun?  Its race comes next."""
    return event.type == "subtask.started"


def test_the_winner_of_a_race_is_the_first_attempt(project: Project) -> None:
    code, printed = project.run(races=["won", "won"], **TIMED)
    assert code == 0
    assert raced(printed)
    for event in raced(printed):
        assert first_of(project.session, event.subtask) == event.race.winner


def test_a_race_that_is_lost_with_its_judge_costs_the_order_alone(project: Project) -> None:
    code, printed = project.run(races=["lost", "lost"], **TIMED)
    assert code == 0
    warned = [event.text for event in printed if isinstance(event, events.Warned)]
    assert "s01: its variants were not raced: the judge's context on the GPU is gone" in warned
    assert raced(printed)[0].race.times == {}
    assert all(subtask.state is SubtaskState.DONE for subtask in project.session.subtasks)
    assert first_of(project.session, "s01")


def test_a_redirect_in_the_midst_of_a_race_is_no_attempt_and_the_race_begins_anew(project: Project) -> None:
    engine = project.start(races=["hang", "won", "won"], **TIMED)
    until(engine, begun)
    (turned,) = send(project, commands.Redirect(subtask="s01", text="go on", now=True, generation=0))
    assert turned.ok
    code, session = ended(project, engine)
    assert code == 0
    first = session.subtask("s01")
    assert (first.direction, first.state) == ("go on", SubtaskState.DONE)
    assert first.race
    assert first_of(session, "s01") == first.race.winner
    assert all(attempt.outcome is not Outcome.REDIRECTED for attempt in session.attempts_of("s01"))


def test_a_stop_in_the_midst_of_a_race_ends_the_run_and_what_it_left_goes_on(project: Project) -> None:
    engine = project.start(races=["hang"], **TIMED)
    until(engine, begun)
    (stopped,) = send(project, commands.Stop(generation=0))
    assert stopped.ok
    code, session = ended(project, engine)
    assert (code, session.iterations) == (1, ())
    assert project.run(resume="", races=["won", "won"], **TIMED)[0] == 0
    assert project.session.subtask("s01").race
