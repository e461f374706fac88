"""What past sessions came to, from git alone, as pages that the documentation index finds."""

import subprocess
from pathlib import Path

import pytest

from stitch_tui.agents import past_sessions
from stitch_tui.tools.docs import sources
from stitch_tui.tools.docs.index import Index
from stitch_tui.tools.history import History, Iteration, Kind, Outcome
from stitch_tui.tools.verdict import Category

SESSION = "20261129-1402-mlp"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit; state is the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "project"
    folder.mkdir()
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "begin"]):
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        subprocess.run(["git", *who, *words], cwd=folder, check=True)
    return folder


def ran(project: Path) -> History:
    """A session that tried three ways of one subtask, and sealed the program."""
    history = History.open(project)
    tip = history.start_session(SESSION).sha
    tries = [
        (Kind.DRAFT, "s01", "naive rows", Outcome.ERROR, Category.BUILD_ERROR, None),
        (Kind.REPAIR, "s01", "tile-64x64x16", Outcome.KEPT, Category.CORRECT, 1.4),
        (Kind.OPTIMISE, "s01", "split-k [b]2[/b]", Outcome.KEPT, Category.CORRECT, 2.125),
        (Kind.SEAL, "program", "", Outcome.KEPT, Category.CORRECT, 1.9),
    ]
    for number, (kind, subtask, title, outcome, verdict, speedup) in enumerate(tries, 1):
        entry = Iteration(
            session=SESSION, iteration=number, subtask=subtask, name="linear+gelu", kind=kind,
            outcome=outcome, title=title, verdict=verdict, device="cuda NVIDIA H200 sm_90",
            speedup_best_baseline=speedup, best_baseline="compile" if speedup else "",
        )  # fmt: skip
        tip = history.commit(SESSION, {"plan.json": str(number).encode()}, entry, tip)
    return history


def test_a_session_is_found_by_its_kernel_with_the_best_first(project: Path, tmp_path: Path) -> None:
    assert past_sessions.write(project, ran(project)) == 1
    (page,) = sources.past_sessions()
    lines = page.path.read_text().splitlines()
    assert lines[2] == f"## linear+gelu: what worked in session {SESSION}, s01"
    assert [line.partition(":")[0] for line in lines[4:]] == [
        "- split-k [b]2[/b]",
        "- tile-64x64x16",
        "- naive rows",
    ]
    assert "kept, correct, 2.12x of compile, cuda NVIDIA H200 sm_90 (iteration 3, commit" in lines[4]
    assert "error, build error" in lines[6]
    index = Index(tmp_path / "docs")
    index.folder.mkdir()
    index.build([*sources.past_sessions(), *sources.notes()], lambda *_: None)
    found = index.search("what worked on linear gelu split-k", limit=1)[0]
    assert (found["library"], found["file"]) == ("sessions", str(page.path))


def test_pages_go_with_their_sessions_and_projects(project: Path) -> None:
    history = ran(project)
    past_sessions.write(project, history)
    before = sources.past_sessions()[0].path.stat().st_mtime_ns
    past_sessions.write(project, history)
    assert sources.past_sessions()[0].path.stat().st_mtime_ns == before, "nothing has changed"
    history.delete(SESSION)
    assert past_sessions.write(project, history) == 0
    assert sources.past_sessions() == []
    past_sessions.write(project, ran(project))
    project.rename(project.with_name("moved"))
    moved = project.with_name("moved")
    past_sessions.write(moved, History.open(moved))
    assert len(sources.past_sessions()) == 1, "the page of the folder that is gone went"
