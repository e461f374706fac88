"""A human steers a run through its socket: each decision is checked, journalled and told in a commit."""

import asyncio
import json
import signal
import subprocess
from pathlib import Path

import pytest
from engine_here import Run
from engine_projects import Project, of_type, send, until

from stitch_tui.agents import commands, events, journal
from stitch_tui.agents.control import Control
from stitch_tui.agents.events import Event
from stitch_tui.agents.gates import Gates
from stitch_tui.agents.journal import Journal
from stitch_tui.agents.record import Record
from stitch_tui.agents.settings import Settings
from stitch_tui.agents.state import SubtaskState
from stitch_tui.session import connected, found
from stitch_tui.tools.iteration import Kind, Outcome

ASK_PLAN = {"autonomy": {"mode": "ask-plan"}}
ASK_EACH = {"autonomy": {"mode": "ask-each"}}


def finished(project: Project, engine) -> tuple[int, events.SessionFinished]:
    """The engine's exit code and last event, from the journal."""
    _, err = engine.communicate(timeout=200)
    assert "Traceback" not in err, err
    last = list(journal.read(project.journal))[-1]
    assert isinstance(last, events.SessionFinished)
    return engine.returncode, last


def test_a_paused_run_gives_up_the_gpu_and_goes_on_when_told(project: Project) -> None:
    engine = project.start(settings=ASK_PLAN)
    until(engine, of_type("plan.proposed"))
    paused, approved = send(
        project, commands.Pause(generation=0), commands.Decide(generation=0, text="as it is")
    )
    assert (paused.ok, paused.text) == (True, "after the current step")
    assert approved.ok
    until(engine, lambda e: e.type == "subtask.updated" and e.state is SubtaskState.PAUSED)
    assert project.session.subtask("s01").state is SubtaskState.PAUSED
    engine.kill()  # that does not end the pause
    engine = project.start(settings=ASK_PLAN, resume="")
    until(engine, lambda e: e.type == "subtask.updated" and e.state is SubtaskState.PAUSED)
    again, resumed = send(project, commands.Pause(generation=0), commands.Resume(generation=0))
    assert (again.ok, again.text) == (False, "the run is paused already")
    assert resumed.ok
    code, _ = finished(project, engine)
    assert code == 0
    assert int((project.folder.parent / "script-1.released").read_text()) >= 2
    told = project.commits[0].iteration.decision
    assert told == "pause by human; approve by human: as it is; resume by human"


def test_each_subtask_waits_for_its_own_approval(project: Project) -> None:
    engine = project.start(settings=ASK_EACH)
    until(engine, of_type("plan.proposed"))
    (approved,) = send(project, commands.Decide(subtask="s02", generation=0))
    assert approved.ok
    until(engine, of_type("subtask.finished"))
    first = project.session
    assert [s.state for s in first.subtasks] == [SubtaskState.PROPOSED, SubtaskState.DONE]
    again, rejected = send(
        project,
        commands.Decide(subtask="s02", generation=0),
        commands.Decide(subtask="s01", choice="reject", generation=0),
    )
    assert "nothing waits for this decision" in again.text
    assert rejected.ok
    assert finished(project, engine)[0] == 0
    assert project.session.subtask("s01").state is SubtaskState.SKIPPED


def test_a_rejected_plan_ends_the_run_as_denied(project: Project) -> None:
    engine = project.start(settings=ASK_PLAN)
    until(engine, of_type("plan.proposed"))
    send(project, commands.Decide(choice="reject", text="no", generation=0))
    code, last = finished(project, engine)
    assert code == 6
    assert last.reason == "the plan was rejected: no"


def test_stop_ends_the_step_and_seals_the_branch(project: Project) -> None:
    engine = project.start(hang=[2])
    until(engine, of_type("code.written", 2))
    (stopped,) = send(project, commands.Stop(text="enough", generation=0))
    assert (stopped.ok, stopped.generation) == (True, 1)
    code, last = finished(project, engine)
    assert (code, last.status, last.reason) == (1, "stopped", "stopped by human: enough")
    cut = project.session.iteration(2)
    assert cut.outcome is Outcome.CANCELLED
    assert project.commits[1].iteration.decision == "stop by human: enough"
    assert [c.iteration.kind for c in project.commits][-1] is Kind.SEAL
    assert last.best == project.commits[-1].sha
    assert project.run(resume="")[0] == 0, "a stopped run can go on"


def test_redirect_now_cancels_the_step_and_tells_the_coder(project: Project) -> None:
    engine = project.start(hang=[1])
    until(engine, of_type("code.written"))
    (turned,) = send(project, commands.Redirect(subtask="s01", text="other way", now=True, generation=0))
    assert (turned.ok, turned.text, turned.generation) == (True, "now", 1)
    assert finished(project, engine)[0] == 0
    session = project.session
    assert session.iteration(1).outcome is Outcome.REDIRECTED
    assert session.subtask("s01").direction == "other way"
    assert session.iteration(1).candidate != session.iteration(2).candidate
    assert project.commits[0].iteration.decision == "redirect s01 by human: other way"


def test_redirect_later_ends_the_step_before_its_next_launch(project: Project) -> None:
    engine = project.start(patient=[1])
    until(engine, of_type("code.written"))
    (turned,) = send(project, commands.Redirect(subtask="s01", text="other way", generation=0))
    assert turned.text == "before the next build, launch or commit"
    assert finished(project, engine)[0] == 0
    first = project.session.iteration(1)
    assert (first.outcome, first.verdict) == (Outcome.REDIRECTED, None)


def test_a_command_for_an_older_generation_is_refused(project: Project) -> None:
    engine = project.start(hang=[1, 2])
    until(engine, of_type("code.written"))
    turned, stale, other = send(
        project,
        commands.Redirect(subtask="s02", text="for later", generation=0),
        commands.Redirect(subtask="s01", text="too late", now=True, generation=0),
        commands.Skip(subtask="s01", generation=1),
    )
    assert turned.text == "before its next attempt"
    assert not stale.ok
    assert "it was made for generation 0; a redirect or stop made it 1" in stale.text
    assert other.ok
    until(engine, of_type("code.written", 1))
    assert project.session.subtask("s01").direction == ""
    send(project, commands.Stop(generation=2))
    finished(project, engine)


def test_the_plan_changes_while_the_run_goes_on(project: Project) -> None:
    engine = project.start(hang=[1])
    until(engine, of_type("code.written"))
    left = project.session.plan.uncovered[0].nodes[0]
    replies = send(
        project,
        commands.Edit(subtask="s02", title="the last one", generation=0),
        commands.Add(title="running sum", nodes=(left,), generation=0),
        commands.Add(title="twice", nodes=(left,), generation=0),
        commands.Reorder(subtask="s03", position=1, generation=0),
        commands.Skip(subtask="s02", generation=0),
        commands.Skip(subtask="s02", undo=True, generation=0),
        commands.Skip(subtask="s03", generation=0),
        commands.Redirect(subtask="s01", text="again", now=True, generation=0),
    )
    assert [reply.ok for reply in replies] == [True, True, False, True, True, True, True, True]
    assert "belongs to s03 already" in replies[2].text
    assert finished(project, engine)[0] == 0
    plan = [(s.id, s.title, s.state) for s in project.session.subtasks]
    assert [id for id, _, _ in plan] == ["s03", "s01", "s02"]
    assert plan[2][1:] == ("the last one", SubtaskState.DONE)
    assert plan[0][2] is SubtaskState.SKIPPED
    assert project.session.subtask("s03").share, "what a person adds is weighed"


def test_an_earlier_version_is_restored_after_the_step(project: Project) -> None:
    engine = project.start(hang=[2])
    until(engine, of_type("code.written", 2))
    wrong, restored = send(
        project, commands.Restore(iteration=2, generation=0), commands.Restore(iteration=1, generation=0)
    )
    assert "no correct version" in wrong.text
    assert restored.ok
    send(project, commands.Redirect(subtask="s02", text="go on", now=True, generation=0))
    assert finished(project, engine)[0] == 0
    kinds = [i.kind for i in project.session.iterations]
    assert kinds[2:] == [Kind.RESTORE, Kind.DRAFT, Kind.INTEGRATE]
    assert [i.commit for i in project.session.iterations] == [c.sha for c in project.commits]


def test_what_is_restored_before_a_stop_is_restored_all_the_same(project: Project) -> None:
    engine = project.start(hang=[2])
    until(engine, of_type("code.written", 2))
    restored, stopped = send(
        project, commands.Restore(iteration=1, generation=0), commands.Stop(generation=0)
    )
    assert restored.ok
    assert stopped.ok
    assert finished(project, engine)[0] == 1
    assert [i.kind for i in project.session.iterations][2] is Kind.RESTORE
    assert [i.commit for i in project.session.iterations] == [c.sha for c in project.commits]


@pytest.mark.slow
def test_nobody_decides_and_the_engine_ends_resumable(project: Project) -> None:
    code, printed = project.run(settings=ASK_PLAN | {"session": {"idle_minutes": 0.001}})
    assert code == 5
    assert "nobody decided anything" in printed[-1].reason
    assert project.run(resume="")[0] == 0


@pytest.mark.parametrize(
    "deny", ["commit", *(pytest.param(name, marks=pytest.mark.slow) for name in ("build", "run"))]
)
def test_a_deny_rule_holds_in_auto_and_when_the_session_is_taken_up(run: Run, deny: str) -> None:
    for resume in (None, ""):
        code, printed = run.with_settings({"autonomy": {"mode": "auto", "deny": [deny]}}, resume=resume)
        assert code == 6
        assert f"denies this run to {deny}" in printed[-1].reason
        assert bool(run.project.commits) == (deny != "commit")


def test_a_restore_is_refused_and_nothing_is_sealed_where_commits_are_denied(run: Run) -> None:
    assert run.with_settings({}, wrong=[0])[0] == 1, "its last commit is a seal"
    name, branch = run.project.session.id, f"refs/heads/{run.project.session.branch}"
    seal = run.project.commits[-1]
    git = ["git", "-C", str(run.project.folder), "update-ref", branch, seal.parent]
    subprocess.run(git, check=True)  # as if a kill had kept the run from it
    lines = run.project.journal.read_bytes().splitlines(keepends=True)
    sealing = next(n for n, line in enumerate(lines) if b'"kind":"seal"' in line)
    run.project.journal.write_bytes(b"".join(lines[:sealing]))

    denied = {"autonomy": {"mode": "auto", "deny": ["commit"]}}
    log = Journal(run.project.journal, name)
    record = Record(log, session=run.project.session)
    control = Control(record, Gates(record, Settings.model_validate(denied), idle))
    refused = control.carry_out(commands.Restore(generation=0, iteration=1))
    assert (refused.ok, "denies this run to commit" in refused.text) == (False, True)
    log.close()
    assert run.with_settings(denied, resume="", wrong=[0])[0] == 1
    assert [commit.sha for commit in run.project.commits][-1] == seal.parent
    assert run.with_settings({}, resume="", wrong=[0])[0] == 1
    assert run.project.commits[-1].iteration.kind is Kind.SEAL


async def idle() -> None:
    """Nothing to release."""


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_the_step_seals_and_says_so(project: Project, sent: signal.Signals, code: int) -> None:
    engine = project.start(hang=[2])
    until(engine, of_type("code.written", 2))
    engine.send_signal(sent)
    assert finished(project, engine)[0] == code
    assert [i.outcome for i in project.session.iterations[:2]] == [Outcome.KEPT, Outcome.CANCELLED]
    assert project.commits[-1].iteration.kind is Kind.SEAL


def test_a_second_engine_is_refused_and_says_who_runs(project: Project) -> None:
    engine = project.start(hang=[1])
    until(engine, of_type("code.written"))
    code, printed = project.run()
    assert code == 2
    assert f"pid {engine.pid}, session {project.session.id}" in printed[-1].reason
    assert "stitch attach" in printed[-1].reason
    send(project, commands.Stop(generation=0))
    finished(project, engine)


def test_two_viewers_get_the_same_stream_wherever_they_join(project: Project) -> None:
    engine = project.start(hang=[1])
    until(engine, of_type("code.written"))

    async def view(since: int, joined: asyncio.Event) -> list[Event]:
        seen = []
        async with connected(found(project.folder)) as connection:
            async for event in connection.stream(since):
                seen.append(event)
                joined.set()
        return seen

    async def both() -> list[list[Event]]:
        joined = [asyncio.Event(), asyncio.Event()]
        viewing = [asyncio.create_task(view(3 * n, event)) for n, event in enumerate(joined)]
        for event in joined:
            await event.wait()
        async with connected(found(project.folder)) as connection:
            await connection.ask(commands.Stop(generation=0))
        return await asyncio.gather(*viewing)

    first, second = asyncio.run(both())
    finished(project, engine)
    written = list(journal.read(project.journal))
    assert first == written
    assert second == written[3:]


def test_what_is_no_command_is_refused_and_the_connection_goes_on(project: Project) -> None:
    engine = project.start(hang=[1])
    until(engine, of_type("code.written"))

    async def talk() -> list[dict]:
        async with connected(found(project.folder)) as connection:
            answers = []
            for line in (b"nonsense\n", b'{"type":"decide"}\n', b'{"type":"pause","generation":0}\n'):
                connection._writer.write(line)
                answers.append(json.loads(await connection._reader.readline()))
            return answers

    answers = asyncio.run(talk())
    assert [answer["ok"] for answer in answers] == [False, False, True]
    assert "generation" in answers[1]["text"]
    send(project, commands.Stop(generation=0))
    finished(project, engine)


def test_the_socket_is_for_this_user_alone(project: Project) -> None:
    engine = project.start(hang=[1])
    until(engine, of_type("code.written"))
    path: Path = found(project.folder).socket
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.parent.stat().st_mode & 0o777 == 0o700
    send(project, commands.Stop(generation=0))
    finished(project, engine)
    assert not path.exists()
