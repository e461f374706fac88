"""What a person writes into the session's kernels is an iteration of theirs, judged like any other."""

import signal
import subprocess
from pathlib import Path

from engine_projects import Project, of_type, send, until

from stitch_tui.agents import commands
from stitch_tui.agents.state import Author, SubtaskState
from stitch_tui.tools.iteration import Kind, Outcome

BY_HAND = "// mine\n"


def kernel(project: Project, subtask: str) -> Path:
    return project.folder / ".stitch" / "work" / project.session.id / "kernels" / f"{subtask}.cu"


def write(path: Path, text: str) -> None:
    """As editors do: beside it, then over it."""
    beside = path.with_suffix(".cu~")
    beside.write_text(text)
    beside.replace(path)


def test_an_edit_wins_over_the_step_that_runs_and_is_not_lost_by_a_kill(project: Project) -> None:
    subprocess.run(["git", "-C", str(project.folder), "config", "user.name", "Ada"], check=True)
    subprocess.run(["git", "-C", str(project.folder), "config", "user.email", "ada@example.org"], check=True)
    bot = {"git": {"author": "A bot <bot@example.org>"}}
    engine = project.start(hang=[1, 2], settings=bot)
    until(engine, of_type("code.written"))
    own = kernel(project, "s01").read_text()
    write(kernel(project, "s01"), own + BY_HAND)
    until(engine, of_type("code.written"))
    engine.kill()
    engine.wait()
    assert project.run(resume="", settings=bot | {"autonomy": {"mode": "auto"}})[0] == 0
    turned, killed, mine = project.session.iterations[:3]
    assert (turned.outcome, turned.verdict) == (Outcome.REDIRECTED, None)
    assert (killed.kind, killed.outcome) == (Kind.HUMAN, Outcome.CANCELLED)
    assert (mine.kind, mine.outcome, mine.subtask) == (Kind.HUMAN, Outcome.KEPT, "s01")
    assert mine.candidate
    assert (mine.candidate.author, mine.candidate.source) == (Author.HUMAN, own + BY_HAND)
    assert project.session.subtask("s01").best == 3
    authors = [commit.author for commit in project.commits]
    assert [("Ada" in author, "bot" in author) for author in authors[:4]] == [
        (False, True), (True, False), (True, False), (False, True),
    ]  # fmt: skip
    assert project.commits[0].iteration.decision == "rewrite s01 by human"


def test_a_subtask_that_has_ended_is_judged_again_and_other_work_goes_on(project: Project) -> None:
    engine = project.start(hang=[2])
    until(engine, of_type("code.written", 2))
    code, out, _ = project.said("edit", "s01")
    assert (code, Path(out.strip())) == (0, kernel(project, "s01")), "without a terminal: where it lies"
    write(kernel(project, "s01"), BY_HAND)
    until(engine, lambda e: e.type == "decision" and e.action == "rewrite")
    assert project.session.iteration(2).outcome is None, "a step on another subtask is not ended"
    send(project, commands.Redirect(subtask="s02", text="go on", now=True, generation=1))
    engine.communicate(timeout=200)
    assert engine.returncode == 0
    mine = project.session.iteration(3)
    assert (mine.kind, mine.subtask, mine.attempt, mine.outcome) == (Kind.HUMAN, "s01", 2, Outcome.KEPT)
    first = project.session.subtask("s01")
    assert (first.state, first.best, first.reason) == (SubtaskState.DONE, 3, "written by hand")
    assert project.session.iterations[-1].kind is Kind.INTEGRATE
    assert kernel(project, "s01").read_text() == BY_HAND


def test_an_edit_while_no_engine_ran_is_seen_when_the_session_goes_on(project: Project) -> None:
    engine = project.start(hang=[2])
    until(engine, of_type("code.written", 2))
    engine.send_signal(signal.SIGTERM)
    engine.communicate(timeout=60)
    ended = project.session.subtask("s01")
    assert ended.state is SubtaskState.DONE
    path = kernel(project, "s01")
    path.write_text(path.read_text() + BY_HAND)
    code, printed = project.run(resume="", wrong=[len(project.session.iterations) + 1])
    assert code == 0
    mine = next(i for i in project.session.iterations if i.kind is Kind.HUMAN)
    assert mine.outcome is Outcome.WRONG
    after = project.session.subtask("s01")
    assert (after.state, after.best, after.reason) == (ended.state, ended.best, ended.reason)
    assert sum(event.type == "decision" for event in printed) == 1
