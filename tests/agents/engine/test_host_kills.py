"""A kill in any step of a host program's attempt loses nothing and repeats that step alone."""

import pytest
from engine_projects import Project
from host_sessions import attempts, last_program, model, models
from test_resume import assert_whole

from stitch_tui.tools.iteration import Kind, Outcome

KEPT, SLOWER, CANCELLED = Outcome.KEPT, Outcome.SLOWER, Outcome.CANCELLED
KILLS = {
    ("verdict", 3): ([], [KEPT, SLOWER]),
    ("exchange", 4): ([], [KEPT, SLOWER]),
    ("iteration.started", 4): ([], [CANCELLED, KEPT, SLOWER]),
    ("written", 3): ([], [CANCELLED, KEPT, SLOWER]),
    ("verdict", 4): ([1.0], [KEPT, SLOWER]),
    ("moved", 4): ([1.0], [KEPT, SLOWER]),
    ("iteration.committed", 4): ([1.0], [KEPT, SLOWER]),
    ("subtask.finished", 2): ([1.0], [KEPT, SLOWER]),
}
"""After which event, or step, the engine is killed -> the speedups of host programs from then on, and what
becomes of each; `scripted_engine.py` has the names.  Two attempts at the kernel and the
integration come first."""
EACH_TIME = {("written", 3), ("moved", 4)}


@pytest.mark.parametrize(
    "kill",
    [pytest.param(kill, marks=() if kill in EACH_TIME else pytest.mark.slow) for kill in KILLS],
    ids=lambda kill: f"{kill[0]}-{kill[1]}",
)
def test_a_run_that_is_killed_at_its_host_program_completes(project: Project, kill: tuple[str, int]) -> None:
    before = project.user_state()
    timed, outcomes = KILLS[kill]
    scripted = model("first", "second", "third", "fourth")
    with scripted.served() as server:
        code, _ = project.run(kill=kill, timed=[1.5, 1.0], settings=models(server.url))
        assert code == -9
        code, printed = project.run(resume="", timed=timed or [1.5, 1.0], settings=models(server.url))
    assert code == 0, printed[-1]
    assert_whole(project)
    assert project.user_state() == before
    assert attempts(project) == outcomes
    assert [i.kind for i in project.session.iterations if not i.subtask and i.verdict] == [Kind.INTEGRATE]
    assert all(i.kind is not Kind.HUMAN for i in project.session.iterations), "nobody edited anything"
    session = project.session
    best = session.best_of(session.subtask("host"))
    assert best is not None
    assert best.candidate is not None
    assert best.candidate.source in last_program(project)
    assert session.program == best.verdict
