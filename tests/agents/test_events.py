"""State is a fold over events, and events survive the trip through a line of JSON."""

import json
from pathlib import Path

import pytest
import sessions
from pydantic import ValidationError

from stitch_tui.agents import events
from stitch_tui.agents.host import route as host_route
from stitch_tui.agents.schema import schema
from stitch_tui.agents.state import Status, SubtaskState
from stitch_tui.tools.iteration import Outcome
from stitch_tui.tools.verdict import Category

ROOT = Path(__file__).resolve().parents[2]


def test_a_kept_iteration_becomes_the_best_of_its_subtask() -> None:
    state = events.fold(
        sessions.started()
        + sessions.attempt(1, Outcome.WRONG, sessions.verdict(Category.NUMERICS))
        + sessions.attempt(2, Outcome.KEPT, sessions.verdict())
        + sessions.attempt(3, Outcome.SLOWER, sessions.verdict())
    )
    assert state.subtask("s01").best == 2
    assert state.subtask("s01").attempts == 3
    assert [i.outcome for i in state.iterations] == [Outcome.WRONG, Outcome.KEPT, Outcome.SLOWER]
    assert state.iteration(2).commit == f"{2:040x}"


def test_approval_leaves_a_skipped_subtask_skipped() -> None:
    skipped = sessions.subtask("s02").model_copy(update={"state": SubtaskState.SKIPPED})
    state = events.fold(sessions.started(sessions.subtask(), skipped))
    assert [s.state for s in state.plan.subtasks] == [SubtaskState.APPROVED, SubtaskState.SKIPPED]


def test_a_pause_outlives_the_engine_and_ends_with_the_session() -> None:
    paused = [*sessions.started(), events.Decision(who="human", action="pause")]
    resumed = events.SessionResumed(device="emulator")
    other = events.Decision(who="human", action="skip", subtask="s01")
    assert events.fold([*paused, resumed, other]).paused
    assert not events.fold([*paused, events.Decision(who="human", action="resume")]).paused
    ended = events.SessionFinished(status=Status.LIMIT, exit_code=5, reason="nobody decided anything")
    assert not events.fold([*paused, ended, resumed]).paused


def test_a_verdict_without_a_subtask_is_the_programs() -> None:
    start = events.IterationStarted(iteration=1, attempt=1, kind="integrate")
    judged = events.VerdictReached(iteration=1, subtask="", verdict=sessions.verdict(), outcome=Outcome.KEPT)
    assert events.fold([*sessions.started(), start, judged]).program == sessions.verdict()


def test_a_host_program_that_is_kept_is_the_program() -> None:
    start = [*sessions.started(sessions.subtask(), host_route.subtask())]
    faster = sessions.attempt(1, Outcome.KEPT, sessions.verdict(speedup=1.5), subtask="host")
    slower = sessions.attempt(2, Outcome.SLOWER, sessions.verdict(speedup=1.0), subtask="host")
    state = events.fold(start + faster + slower)
    assert state.program == sessions.verdict(speedup=1.5)
    assert state.subtask("host").best == 1
    assert [s.id for s in state.kernels] == ["s01"]


def test_every_event_round_trips_through_json() -> None:
    for event in sessions.started() + sessions.attempt(1, Outcome.KEPT, sessions.verdict(speedup=1.5)):
        assert events.parse(event.model_dump_json()) == event


@pytest.mark.parametrize(
    "line", ["{}", '{"type": "session.begun"}', '{"type": "warning", "text": "x", "extra": 1}', "nonsense"]
)
def test_a_line_that_is_no_event_is_refused(line: str) -> None:
    with pytest.raises(ValidationError):
        events.parse(line)


def test_the_published_schema_is_the_one_the_models_generate() -> None:
    published = json.loads((ROOT / "docs" / "events.schema.json").read_text())
    assert published == schema(), "run: python -m stitch_tui.agents.schema"
