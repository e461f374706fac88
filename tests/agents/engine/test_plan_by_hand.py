"""What a person writes into the session's ``plan.toml`` is done, whether an engine runs or not."""

import os
import signal
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tomli_w
from engine_projects import Project, of_type, until
from watchfiles import watch

from stitch_tui.agents import journal, plan_file
from stitch_tui.agents.events import Decision, Warned
from stitch_tui.agents.state import SubtaskState
from stitch_tui.tools.iteration import Outcome
from stitch_tui.tools.regular_file import LARGEST_SOURCE_BYTES


def plan_of(project: Project) -> Path:
    """The session's ``plan.toml``, once it lies there."""
    path = project.folder / ".stitch" / "work" / project.session.id / "plan.toml"
    when(path, path.is_file)
    return path


def when(path: Path, holds: Callable[[], bool]) -> None:
    """Wait for a change near `path` until something holds."""
    for _ in watch(path.parent, rust_timeout=100, yield_on_timeout=True):
        if holds():
            return


def write(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """As editors do: beside it, then over it."""
    plan = tomllib.loads(path.read_text())
    edit(plan)
    beside = path.with_suffix(".toml~")
    beside.write_text(tomli_w.dumps(plan))
    beside.replace(path)


def said(project: Project, kind: type[Decision] | type[Warned]) -> list[str]:
    found = [event for event in journal.read(project.journal) if isinstance(event, kind)]
    return [event.sentence if isinstance(event, Decision) else event.text for event in found]


def test_a_changed_plan_wins_over_the_step_that_runs(project: Project) -> None:
    subprocess.run(["git", "-C", str(project.folder), "config", "user.name", "Ada"], check=True)
    subprocess.run(["git", "-C", str(project.folder), "config", "user.email", "ada@example.org"], check=True)
    engine = project.start(hang=[1])
    until(engine, of_type("code.written"))
    path = plan_of(project)
    last = project.session.subtasks[-1].id

    def edit(plan: dict[str, Any]) -> None:
        plan["subtask"][0] |= {"title": "ours", "strategy": "one warp a row"}
        del plan["subtask"][-1]

    write(path, edit)
    engine.communicate(timeout=200)
    assert engine.returncode == 0, "what hung was turned back"
    session = project.session
    first = session.subtask("s01")
    assert (first.title, first.strategy, session.generation) == ("ours", "one warp a row", 1)
    assert session.subtask(last).state is SubtaskState.SKIPPED
    assert [i.outcome for i in session.iterations[:2]] == [Outcome.REDIRECTED, Outcome.KEPT]
    rewritten = f"rewrite by human: plan.toml by Ada: s01: title, strategy; {last}: skipped"
    assert said(project, Decision)[:3] == [
        rewritten, "edit s01 by human", f"skip {last} by human: deleted from the plan",
    ]  # fmt: skip
    assert rewritten in project.commits[0].iteration.decision, "the commit that it led to says so"
    kept = plan_file.read(path.read_bytes())
    assert [(row.id, row.state) for row in kept.rows] == [("s01", "done"), (last, "skipped")]
    assert not kept.by_hand


def test_a_plan_is_approved_and_put_in_order_with_any_editor(project: Project) -> None:
    engine = project.start(settings={"autonomy": {"mode": "ask-each"}}, hang=[1])
    until(engine, of_type("plan.proposed"))
    path = plan_of(project)
    order = [subtask.id for subtask in project.session.subtasks][::-1]

    def edit(plan: dict[str, Any]) -> None:
        plan["subtask"].reverse()
        plan["subtask"][0]["state"] = "approved"

    write(path, edit)
    until(engine, of_type("code.written"))
    assert [subtask.id for subtask in project.session.subtasks] == order
    assert project.session.iteration(1).subtask == order[0]
    assert project.session.subtask(order[-1]).state is SubtaskState.PROPOSED


def test_what_cannot_be_done_is_said_and_the_file_left_alone(project: Project) -> None:
    engine = project.start(hang=[1])
    until(engine, of_type("code.written"))
    path = plan_of(project)
    nodes = tomllib.loads(path.read_text())["subtask"][-1]["nodes"]

    path.write_text("[[subtask")
    until(engine, of_type("warning"))
    assert path.read_text() == "[[subtask"
    path.write_text(tomli_w.dumps({"subtask": [{"id": "s01", "title": 3}]}))
    until(engine, of_type("warning"))
    path.write_text(tomli_w.dumps({"subtask": [{"id": "s77", "title": "x"}], "end": {}}))
    until(engine, of_type("warning"))
    path.write_text("a = " + "[" * 5000)
    until(engine, of_type("warning"))
    path.write_bytes(b"#" * (LARGEST_SOURCE_BYTES + 1))
    until(engine, of_type("warning"))
    assert path.stat().st_size > LARGEST_SOURCE_BYTES, "a person's, whatever it is"
    path.unlink()
    when(path, path.is_file)
    write(path, lambda plan: plan["subtask"].append({"title": "again", "nodes": nodes}))
    until(engine, of_type("warning"))
    texts = said(project, Warned)[-6:]
    assert [text.split(":")[0] for text in texts] == ["plan.toml"] * 6
    assert "Expected" in texts[0] or "Invalid" in texts[0]
    assert "subtask.0.title" in texts[1]
    assert "no subtask s77" in texts[2]
    assert "nested too deeply" in texts[3]
    assert "more than" in texts[4]
    assert "new: again" in texts[5]
    assert "belongs to" in texts[5]
    assert len(project.session.subtasks) == len(plan_file.read(path.read_bytes()).rows) - 1


def test_a_half_saved_plan_skips_nothing(project: Project) -> None:
    engine = project.start(hang=[1])
    until(engine, of_type("code.written"))
    path = plan_of(project)
    whole = path.read_text()
    last = whole.rindex("[[subtask]]")
    path.write_text(whole[:last])  # who saves in two pieces, or whose disk is full
    until(engine, of_type("warning"))
    assert said(project, Warned)[-1].startswith("plan.toml: its end is missing: it may be half saved")
    assert path.read_text() == whole[:last]
    path.write_text(whole)
    assert project.said("ctl", "redirect", "s01", "go on", "--now")[0] == 0
    engine.communicate(timeout=200)
    assert engine.returncode == 0
    assert [s.state for s in project.session.subtasks] == [SubtaskState.DONE] * 2
    assert not any("rewrite" in sentence for sentence in said(project, Decision))


def test_an_edit_while_no_engine_ran_is_done_when_the_session_goes_on(project: Project) -> None:
    engine = project.start(settings={"autonomy": {"mode": "ask-plan"}})
    until(engine, of_type("plan.proposed"))
    path = plan_of(project)
    engine.send_signal(signal.SIGTERM)
    engine.communicate(timeout=60)
    write(path, lambda plan: plan["subtask"][0].update(title="renamed", state="skipped"))
    assert project.run(resume="", settings={"autonomy": {"mode": "auto"}})[0] == 0
    first = project.session.subtask("s01")
    assert (first.title, first.state) == ("renamed", SubtaskState.SKIPPED)
    assert sum("rewrite" in sentence for sentence in said(project, Decision)) == 1


def test_pipes_where_files_should_be_are_not_waited_for(project: Project) -> None:
    engine = project.start(hang=[1])
    until(engine, of_type("code.written"))
    path = plan_of(project)
    path.unlink()
    os.mkfifo(path)
    kernel = path.parent / "kernels" / "s01.cu"
    kernel.unlink()
    os.mkfifo(kernel)
    assert project.said("ctl", "redirect", "s01", "go on", "--now")[0] == 0
    engine.communicate(timeout=200)
    assert engine.returncode == 0
    assert plan_file.read(path.read_bytes()).rows, "replaced by a file again"
