"""A kill at any point loses nothing and repeats nothing but the interrupted step."""

import subprocess

import pytest
from engine_projects import Project

from stitch_tui.agents import events, journal
from stitch_tui.tools.iteration import Kind, Outcome

KILLS = [
    ("written", 1),
    ("moved", 1),
]
"""Event and its count, in a run of two subtasks and the program; the fourth commit seals."""
MORE_KILLS = [
    ("session.started", 1),
    ("verdict", 1),
    ("iteration.started", 1),
    ("code.written", 1),
    ("commit.intended", 2),
    ("subtask.finished", 1),
    ("opened", 1),
    ("reference.profiled", 1),
    ("plan.proposed", 1),
    ("moved", 3),
    ("moved", 4),
    ("iteration.committed", 1),
    ("iteration.started", 3),
    ("verdict", 3),
]


@pytest.mark.parametrize(
    "kill",
    [*KILLS, *(pytest.param(kill, marks=pytest.mark.slow) for kill in MORE_KILLS)],
    ids=lambda kill: f"{kill[0]}-{kill[1]}",
)
def test_a_killed_run_completes(project: Project, kill: tuple[str, int]) -> None:
    before = project.user_state()
    # the program is judged wrong, so that the branch must be sealed with an earlier iteration
    code, _ = project.run(kill=kill, wrong=[0])
    assert code == -9
    code, printed = project.run(resume="", wrong=[0])
    assert code == 1
    assert printed[-1].type == "session.finished"
    assert_whole(project)
    assert project.user_state() == before
    cancelled = [i for i in project.session.iterations if i.outcome is Outcome.CANCELLED]
    assert len(cancelled) == (kill[0] in ("iteration.started", "code.written", "written"))
    assert all(i.kind is not Kind.HUMAN for i in project.session.iterations), "nobody edited anything"
    subtasks = [i.subtask for i in project.session.iterations if i.verdict and i.subtask]
    assert subtasks == ["s01", "s02"], "an attempt with a verdict is not made again"


def assert_whole(project: Project) -> None:
    """Journal and branch tell the same story, and nothing is left behind."""
    session, commits = project.session, project.commits
    assert [i.commit for i in session.iterations] == [c.sha for c in commits]
    assert [i.number for i in session.iterations] == [c.iteration.iteration for c in commits]
    assert [i.outcome for i in session.iterations] == [c.iteration.outcome for c in commits]
    sequence = [event.seq for event in journal.read(project.journal)]
    assert sequence == list(range(1, len(sequence) + 1))
    assert all(subtask.state.ended for subtask in session.subtasks)
    assert not (project.folder / ".stitch" / "engine.json").exists()
    assert not list((project.folder.parent / "run").rglob("*.sock"))


def test_a_kill_before_the_first_event_leaves_no_branch(project: Project) -> None:
    assert project.run(kill=("prepared", 1))[0] == -9
    assert journal.sessions(project.folder) == []
    git = ["git", "-C", str(project.folder), "branch", "--list", "stitch/*"]
    assert subprocess.run(git, capture_output=True, check=True).stdout == b""


@pytest.mark.slow
def test_a_run_that_was_killed_again_and_again_completes(project: Project) -> None:
    assert project.run(kill=("code.written", 1))[0] == -9
    for _ in range(2):
        assert project.run(kill=("code.written", 1), resume="")[0] == -9
    assert project.run(resume="")[0] == 0
    assert [i.outcome for i in project.session.iterations[:3]] == [Outcome.CANCELLED] * 3
    assert_whole(project)


@pytest.mark.slow
def test_a_finished_session_resumes_to_the_same_end(project: Project) -> None:
    first, printed = project.run()
    last = printed[-1]
    assert isinstance(last, events.SessionFinished)
    code, again = project.run(resume=project.session.id)
    assert code == first == 0
    assert [event.type for event in again] == ["session.resumed", "session.finished"]
    assert again[-1].model_dump(exclude={"seq", "time"}) == last.model_dump(exclude={"seq", "time"})


def test_a_torn_last_line_does_not_stop_a_resume(project: Project) -> None:
    project.run(kill=("verdict", 1))
    with project.journal.open("ab") as end:
        end.write(b'{"v":1,"seq":11,"ty')
    assert project.run(resume="")[0] == 0
    assert_whole(project)


def test_a_foreign_commit_on_the_branch_is_refused_with_the_reason(project: Project) -> None:
    project.run(kill=("subtask.finished", 1))
    branch = f"refs/heads/{project.session.branch}"
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-C", str(project.folder)]
    tree = f"{branch}^{{tree}}"
    made = subprocess.run(
        [*git, "commit-tree", tree, "-p", branch, "-m", "mine"], capture_output=True, check=True
    )
    subprocess.run([*git, "update-ref", branch, made.stdout.decode().strip()], check=True)
    code, printed = project.run(resume="")
    assert code == 2
    assert "not as its journal left it" in printed[-2].text


def test_a_journal_of_a_newer_stitch_is_refused(project: Project) -> None:
    project.run(kill=("verdict", 1))
    with project.journal.open("ab") as end:
        end.write(b'{"v":2,"seq":99,"type":"dream"}\n')
    code, printed = project.run(resume="")
    assert code == 2
    assert "newer stitch" in printed[-1].reason


@pytest.mark.parametrize("name", ["", "20260101-0000-nothing"])
def test_nothing_to_resume_is_one_clear_error(project: Project, name: str) -> None:
    code, printed = project.run(resume=name)
    assert code == 2
    assert [event.type for event in printed] == ["error", "session.finished"]
    assert "to resume" in printed[-1].reason
