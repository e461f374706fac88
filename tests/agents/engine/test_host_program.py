"""The host program as a subtask: after the kernels, against the stitched program, kept when it is faster."""

from typing import Any

import pytest
from engine_here import Run
from engine_projects import Project, of_type, send, until
from scripted_model import ScriptedModel, answer, plan, pointwise

from stitch_tui.agents import commands
from stitch_tui.agents.events import Event
from stitch_tui.agents.state import SubtaskState
from stitch_tui.session import source_path
from stitch_tui.tools.bundle import read_bundle
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.iteration import Kind, Outcome

LEFT = [(["logcumsumexp", "sigmoid"], "a scan is as fast in PyTorch")]
PLAN = plan(("front", ["relu", "mul", "layer_norm"]), left=LEFT) | {"host": "replay the pass as a graph"}
KERNEL = answer(pointwise("v"))
SHORT = {"goal": {"stagnation": 2}, "limits": {"iterations": 9}}


def host(word: str) -> str:
    """An answer that changes the host program by a comment."""
    head = "    def forward(self, x):"
    edit = f"<<<<<<< SEARCH\n{head}\n=======\n{head}\n        # {word}\n>>>>>>> REPLACE"
    return f"STRATEGY: {word}\nNOTE: fewer launches\n{edit}\n"


def said(printed: list[Event], kind: str) -> list[Any]:
    return [event for event in printed if event.type == kind]


def iterations(run: Run) -> list[tuple[str, str, str]]:
    found = [i for i in run.project.session.iterations if i.verdict]
    return [(i.subtask, str(i.kind), str(i.outcome)) for i in found]


def test_a_faster_host_program_takes_the_place_of_the_one_before(run: Run) -> None:
    words = ("first", "second", "third", "fourth", "fifth")
    model = ScriptedModel([PLAN], [KERNEL], host=[host(word) for word in words])
    code, printed = run(model, "planner", "coder", timed=[1.0, 1.5, 1.3, 0.9, 1.0], **SHORT)
    assert code == 0
    assert [found[1:] for found in iterations(run) if found[0] in ("", "host")] == [
        ("integrate", "kept"),
        ("program", "slower"),
        ("program", "kept"),
        ("program", "kept"),
        ("program", "slower"),
        ("program", "slower"),
    ]
    session = run.project.session
    kept = session.best_of(session.subtask("host"))
    assert kept is not None
    assert kept.candidate is not None
    assert session.program == kept.verdict
    assert session.subtask("host").reason == "no improvement in 2 attempts"
    last = run.project.commits[-1].iteration
    assert (last.whole_program, last.restores) == (True, kept.number)
    assert kept.candidate.source in read_bundle(run.project.history.files(last.iteration)).model_new
    prompts = model.prompts["host"]
    assert all("replay the pass as a graph" in prompt for prompt in prompts)
    assert "# second" not in prompts[1]
    assert "# second" in prompts[2]
    assert [event.stage for event in said(printed, "exchange")][-5:] == ["program"] * 5


def test_restored_to_before_it_the_program_goes_on_without_it(run: Run) -> None:
    model = ScriptedModel([PLAN], [KERNEL], host=[host("first"), host("second")])
    run(model, "planner", "coder", timed=[1.5], **SHORT)
    project = run.project
    stitched = next(i for i in project.session.iterations if i.kind is Kind.INTEGRATE)
    assert project.session.subtask("host").best == stitched.number + 1
    restored = project.history.restore(stitched.number, decision="restored by human")
    code, printed = run(model, "planner", "coder", resume="", timed=[], **SHORT)
    assert code == 0
    session = project.session
    assert (session.subtask("host").best, session.subtask("s01").best) == (None, 1)
    (decided,) = said(printed, "decision")
    assert decided.sentence == f"restore iteration {stitched.number} by human"
    again = session.iterations[restored.iteration.iteration :]
    assert [i.kind for i in again][:1] == [Kind.INTEGRATE], "judged once more, without the host program"
    assert session.program == again[0].verdict
    assert [i.commit for i in session.iterations] == [c.sha for c in project.commits]
    assert "# first" not in read_bundle(project.history.files(again[0].commit)).model_new


def test_without_a_faster_one_the_program_of_stitch_stays(run: Run) -> None:
    model = ScriptedModel([PLAN], [KERNEL], host=[host("first")])
    code, _ = run(model, "planner", "coder", timed=[], **SHORT)
    assert code == 0
    session = run.project.session
    subtask = session.subtask("host")
    assert (subtask.state, subtask.best) == (SubtaskState.DONE, None)
    assert subtask.reason == "stitch's own host program stays: no improvement in 2 attempts"
    best = run.project.history.best()
    assert best is not None
    assert best.iteration.kind is Kind.INTEGRATE
    assert "# first" not in read_bundle(run.project.history.files(run.project.commits[-1].sha)).model_new


def test_a_host_program_that_falls_back_to_torch_is_an_iteration_and_is_never_run(run: Run) -> None:
    fallen = host("fallen").replace("# fallen", "x = torch.relu(x) * 2")
    model = ScriptedModel([PLAN], [KERNEL], host=[*[fallen] * 3, host("honest")])
    run(model, "planner", "coder", timed=[1.5], **SHORT)
    refused = next(i for i in run.project.session.iterations if i.kind is Kind.PROGRAM)
    assert refused.outcome is Outcome.ERROR
    assert refused.candidate is not None
    assert refused.candidate.refused.startswith("`torch.relu` is not for a host program")
    assert refused.commit
    assert "`torch.relu` is not for a host program" in model.prompts["host"][2]
    assert run.project.session.subtask("host").best is not None


def test_where_nothing_is_timed_no_model_is_asked_for_one(run: Run) -> None:
    model = ScriptedModel([PLAN], [KERNEL])
    code, _ = run(model, "planner", "coder")
    assert code == 0
    assert model.prompts["host"] == []
    assert run.project.session.subtask("host").reason == (
        "stitch's own host program stays: nothing is timed on the emulator"
    )


def test_a_human_adds_redirects_and_skips_it(project: Project) -> None:
    engine = project.start(settings={"autonomy": {"mode": "ask-plan"}})
    until(engine, of_type("plan.proposed"))
    added, again, nodes, redirected, skipped, back = send(
        project,
        commands.Add(title="one graph", nodes=("host",), generation=0),
        commands.Add(title="two graphs", nodes=("host",), generation=0),
        commands.Edit(subtask="host", nodes=("relu",), generation=0),
        commands.Redirect(subtask="host", text="two streams", generation=0),
        commands.Skip(subtask="host", generation=1),
        commands.Skip(subtask="host", undo=True, generation=1),
    )
    assert added.ok
    assert "there is a host program already" in again.text
    assert "the host program owns no nodes" in nodes.text
    assert (redirected.ok, redirected.text) == (True, "before its next attempt")
    assert (skipped.ok, back.ok) == (True, True)
    (approved,) = send(project, commands.Decide(generation=1))
    assert approved.ok
    engine.communicate(timeout=200)
    subtask = project.session.subtask("host")
    assert (subtask.title, subtask.direction) == ("one graph", "two streams")
    assert subtask.reason == "stitch's own host program stays: the Coder has no other"


def test_a_person_begins_with_the_host_program_as_it_is_stitched_now(run: Run) -> None:
    model = ScriptedModel([PLAN], [KERNEL])
    run(model, "planner", "coder")
    project = run.project
    path = source_path(project.folder, project.session, "host")
    stitched = read_bundle(project.history.files(project.commits[-1].sha)).model_new
    assert stitched.endswith(path.read_text())
    assert "class ModelNew(StitchModule)" in path.read_text()
    before = len(project.session.iterations)
    run(model, "planner", "coder", resume="")
    assert len(project.session.iterations) == before, "opened and left as it was, it is nobody's edit"
    mine = path.read_text().replace("def forward(self, x):", "def forward(self, x):  # mine")
    path.write_text(mine)
    run(model, "planner", "coder", resume="")
    first = project.session.iterations[before]
    assert first.candidate is not None
    assert (first.subtask, first.kind, first.candidate.source) == ("host", Kind.HUMAN, mine)


def test_before_anything_is_stitched_there_is_no_host_program_to_edit(project: Project) -> None:
    engine = project.start(settings={"autonomy": {"mode": "ask-plan"}})
    until(engine, of_type("plan.proposed"))
    send(project, commands.Add(title="by hand", nodes=("host",), generation=0))
    with pytest.raises(UsageError, match=r"no stitched program yet .*once every kernel is done"):
        source_path(project.folder, project.session, "host")
    code, out, err = project.said("edit", "host")
    assert (code, out) == (2, "")
    assert "no stitched program yet" in err


BY_HAND = "class ModelNew(StitchModule):  # by hand\n    stitch_program = None\n"


def written_by_hand(project: Project, **script: Any) -> list[Event]:
    """The events of a run in which a human adds the host program and writes it before anything else."""
    engine = project.start(settings={"autonomy": {"mode": "ask-plan"}}, **script)
    seen = until(engine, of_type("plan.proposed"))
    send(project, commands.Add(title="by hand", nodes=("host",), generation=0))
    (project.folder / ".stitch" / "work" / project.session.id / "host.py").write_text(BY_HAND)
    seen += until(engine, of_type("iteration.committed"))
    send(project, commands.Decide(generation=project.session.generation))
    return seen + until(engine, of_type("session.finished"))


def test_a_host_program_that_a_human_writes_is_judged_and_stays(project: Project) -> None:
    written_by_hand(project)
    first, *_, last = project.session.iterations
    assert (first.subtask, first.kind, first.outcome) == ("host", Kind.HUMAN, Outcome.KEPT)
    assert (last.kind, last.outcome) == (Kind.INTEGRATE, Outcome.KEPT)
    assert project.session.subtask("host").best == first.number
    assert "# by hand" in read_bundle(project.history.files(project.commits[-1].sha)).model_new


def test_a_host_program_that_the_kernels_make_wrong_is_let_go_before_any_kernel_is(project: Project) -> None:
    (reopened,) = said(written_by_hand(project, wrong=[0]), "subtask.reopened")
    assert reopened.subtask == "host"
    assert reopened.reason == "wrong with the kernels as they are now: as scripted"
    kinds = [i.kind for i in project.session.iterations if not i.subtask and i.verdict]
    assert kinds == [Kind.INTEGRATE, Kind.INTEGRATE], "the second with the host program of stitch"
    assert project.session.subtask("host").reason == (
        "stitch's own host program stays: there is no correct stitched program to start from"
    )
