"""A session with models runs again from its journal alone, and says where it came to something else."""

import dataclasses
from typing import Any

import pytest
from engine_here import Run
from engine_projects import Project
from scripted_model import ADVICE, ScriptedModel, answer, plan, pointwise

from stitch_tui.agents import replay
from stitch_tui.agents.settings import Settings
from stitch_tui.agents.state import Session
from stitch_tui.tools.errors import UsageError

FRONT = plan(("front", ["relu", "mul", "layer_norm"]), left=[(["logcumsumexp", "sigmoid"], "a scan")])
CODE = answer(pointwise("v"))


def again(run: Run, name: str, wrong: list[int]) -> list[str]:
    """Replay a session; how it differs from the recorded one."""
    recorded = replay.recording(run.project.folder, name)
    tables = replay.settings_of(recorded, Settings()).model_dump(mode="json", include={"models"})
    _, printed = run.with_settings(tables, wrong=wrong, cast=replay.replaying(recorded))
    assert printed[-1].type == "session.finished"
    return list(replay.differences(recorded.session, run.project.session))


def test_a_session_is_replayed_without_its_endpoint(run: Run) -> None:
    hard = ["no", "not a plan", FRONT]
    coder = ["I will not.", CODE, answer(pointwise("v * 2.0f"), followed="yes")]
    code, _ = run(ScriptedModel(hard, coder, [ADVICE]), "planner", "coder", "verifier", wrong=[1])
    assert code == 0
    name = run.project.session.id
    assert again(run, name, [1]) == []
    assert run.project.session.id != name
    sources = [i.candidate.source for i in run.project.session.iterations if i.candidate]
    recorded = replay.recording(run.project.folder, name).session
    assert sources == [i.candidate.source for i in recorded.iterations if i.candidate]
    changed = again(run, name, [])
    assert changed[0] == "iteration 1: recorded s01 wrong, now s01 kept"


def test_a_replay_asks_no_endpoint_for_vectors_either() -> None:
    mine = {"provider": "openai", "model": "e", "base_url": "https://vectors.example/v1"}
    settings = Settings.model_validate({"models": {"embedding": mine}})
    recorded = replay.Recording(Session(), {"coder": "tiny", "embedding": "tiny"}, ())
    models = replay.settings_of(recorded, settings).models
    assert (models.coder.base_url, models.embedding.provider) == (replay.NOWHERE, "none")


def test_what_cannot_be_replayed_is_one_clear_error(run: Run, project: Project) -> None:
    for name in ("nothing", "x" * 5000, "a\0b"):
        with pytest.raises(UsageError, match="no such session"):
            replay.recording(project.folder, name)
    run(ScriptedModel(["no"]))
    with pytest.raises(UsageError, match="no role was a model"):
        replay.recording(project.folder, project.session.id)


@pytest.mark.parametrize(
    "options", [{"python": "/tmp/somebody's"}, {"mode": "dream"}, {"load_seconds": -5}, {"new": 1}], ids=str
)
def test_a_recording_sets_no_more_of_a_reference_than_a_session_keeps(
    run: Run, project: Project, options: dict[str, Any]
) -> None:
    run(ScriptedModel([FRONT], [CODE], [ADVICE]), "planner")
    recorded = replay.recording(project.folder, project.session.id)
    session = recorded.session.model_copy(update={"options": options})
    with pytest.raises(UsageError, match=f"reference.{next(iter(options))}"):
        replay.settings_of(dataclasses.replace(recorded, session=session), Settings())


def test_a_role_of_a_recording_that_there_is_not_is_passed_over(run: Run, project: Project) -> None:
    run(ScriptedModel([FRONT], [CODE], [ADVICE]), "planner")
    lines = project.journal.read_text().replace('"roles":{"planner"', '"roles":{"emperor"')
    (project.folder / "old.jsonl").write_text(lines)
    with pytest.raises(UsageError, match="no role was a model"):
        replay.recording(project.folder, str(project.folder / "old.jsonl"))


def test_where_the_recording_has_no_further_answer_the_role_has_nothing_more_to_say(run: Run) -> None:
    """Another device asks for more attempts, or for fewer."""
    faster = [answer(pointwise(f"v + {number}.0f"), followed="yes") for number in range(4)]
    model = ScriptedModel([FRONT], faster, [ADVICE | {"bottleneck": "memory"}])
    run(model, "planner", "coder", "verifier", timed=[], limits={"iterations": 3})
    name = run.project.session.id
    recorded = replay.recording(run.project.folder, name)
    tables = replay.settings_of(recorded, Settings()).model_dump(mode="json", include={"models"})
    more = {"limits": {"iterations": 9}, "goal": {"stagnation": 9}}
    code, _ = run.with_settings(tables | more, cast=replay.replaying(recorded), timed=[])
    assert code == 0
    assert run.project.session.subtask("s01").reason == "every strategy of the Coder was tried or raced"
    assert len(run.project.session.attempts_of("s01")) == 3
    code, _ = run.with_settings(tables, cast=replay.replaying(recorded))
    assert code == 0
    assert len(run.project.session.attempts_of("s01")) == 1
