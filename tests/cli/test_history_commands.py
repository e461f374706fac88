import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from stitch_tui.agents import presence
from stitch_tui.cli import invoke
from stitch_tui.tools.errors import ExitCode
from stitch_tui.tools.history import History, Iteration, Kind, Outcome
from stitch_tui.tools.verdict import Category


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def attempt(number: int, verdict: Category, session: str) -> Iteration:
    return Iteration(
        session=session,
        iteration=number,
        subtask="s01",
        attempt=number,
        kind=Kind.DRAFT,
        outcome=Outcome.KEPT if verdict is Category.CORRECT else Outcome.WRONG,
        title="tiled",
        verdict=verdict,
        device="emulator",
    )


@pytest.fixture
def repository(project: Path) -> Path:
    """A project with one session of two iterations: a wrong one and a correct one."""
    git(project, "init", "-q")
    history = History.open(project)
    add_session(history, "one")
    return project


def add_session(history: History, name: str) -> None:
    tip = history.start_session(name).sha
    for number, verdict in enumerate((Category.NUMERICS, Category.CORRECT), start=1):
        files = {"kernels/s01.cu": f"// version {number}\x1b[2J\n".encode()}
        tip = history.commit(name, files, attempt(number, verdict, name), tip)


def output(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert invoke(words) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_log_prints_each_iteration(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = output(capsys, "log").splitlines()
    assert len(lines) == 2
    assert "s01: iteration 2: tiled" in lines[1]
    rows = json.loads(output(capsys, "log", "--json"))
    assert [(row["iteration"], row["verdict"]) for row in rows] == [(1, "numerics"), (2, "correct")]


def test_show_prints_what_an_iteration_changed_without_steering_the_terminal(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = output(capsys, "show", "2")
    assert "Stitch-Iteration: 2" in out
    assert "stitched/kernels/s01.cu" in out
    assert "+// version 2\\x1b[2J" in out
    assert "\x1b" not in out
    shown = json.loads(output(capsys, "show", "best", "--json"))
    assert shown["files"] == ["kernels/s01.cu"]
    assert "\x1b" in shown["diff"]


def test_diff_compares_two_iterations(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = output(capsys, "diff", "1", "2")
    assert "-// version 1" in out
    assert "+// version 2" in out


def test_best_is_the_correct_one_and_none_is_exit_1(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert json.loads(output(capsys, "best", "--json"))["iteration"] == 2
    history = History.open(repository)
    tip = history.start_session("two").sha
    history.commit("two", {}, attempt(1, Category.NUMERICS, "two"), tip)
    assert invoke(["best", "--session", "two"]) == ExitCode.GOAL_NOT_MET


def test_restore_rolls_forward(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(output(capsys, "restore", "1", "--json"))["iteration"] == 3
    assert "-// version 2" in output(capsys, "show", "3")


def test_apply_brings_the_best_into_the_tree_but_not_over_edits(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = repository / "stitched/kernels/s01.cu"
    assert "wrote stitched/kernels/s01.cu" in output(capsys, "apply")
    assert kernel.read_text().startswith("// version 2")
    kernel.write_text("mine")
    assert invoke(["apply", "1"]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert kernel.read_text() == "mine"
    done = json.loads(output(capsys, "apply", "1", "--force", "--json"))
    assert done["overwritten"] == ["stitched/kernels/s01.cu"]
    assert kernel.read_text().startswith("// version 1")


def test_export_writes_the_bundle(
    repository: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    output(capsys, "export", str(tmp_path / "out"))
    assert (tmp_path / "out/kernels/s01.cu").read_text().startswith("// version 2")


def test_export_as_one_file_needs_a_whole_bundle(
    repository: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert invoke(["export", str(tmp_path / "one.py"), "--format", "kernelbench"]) == ExitCode.USAGE
    assert "plan.toml is missing" in capsys.readouterr().err
    assert not (tmp_path / "one.py").exists()


def test_prune_keeps_the_latest_and_says_how_to_bring_the_rest_back(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = History.open(repository)
    add_session(history, "two")
    names = [s["name"] for s in json.loads(output(capsys, "sessions", "list", "--json"))]
    assert sorted(names) == ["one", "two"]
    assert "would remove" in output(capsys, "sessions", "prune", "--keep", "1", "--dry-run")
    assert len(history.sessions()) == 2
    removed = output(capsys, "sessions", "prune", "--keep", "1")
    assert [s.name for s in history.sessions()] == names[:1]
    git(repository, *removed.split("back: git ")[1].split())
    assert len(history.sessions()) == 2


def test_a_clone_with_an_untrusted_project_file_can_read_the_history(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "stitch.toml").write_text("[models.coder]\nbase_url = 'http://localhost/v1'\n")
    assert "iteration 2" in output(capsys, "log")


def test_prune_takes_journals_and_work_folders_along_but_nothing_of_the_session_that_runs(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = History.open(repository)
    add_session(history, "two")
    folders = [repository / ".stitch" / kind for kind in ("sessions", "work")]
    for name in ("one", "two", "lost its branch"):
        for folder in folders:
            (folder / name).mkdir(parents=True)
            (folder / name / "file").write_text("x")

    async def while_one_runs() -> None:
        async with presence.claimed(repository) as engine:
            assert invoke(["sessions", "prune", "--keep", "1"]) == ExitCode.USAGE, "it may take up any"
            engine.announce("one")
            assert invoke(["sessions", "prune", "--keep", "1"]) == 0

    asyncio.run(while_one_runs())
    out, err = capsys.readouterr()
    assert "is opening the reference" in err
    assert out == "removed what is left of lost its branch\n"
    assert sorted(path.name for path in folders[0].iterdir()) == ["one", "two"]
    assert json.loads(output(capsys, "sessions", "prune", "--keep", "1", "--json"))["removed"]
    for folder in folders:
        assert [path.name for path in folder.iterdir()] == ["two"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["log", "--session", "oen"], ExitCode.USAGE, "no session oen (there is one)"),
        (["show", "9"], ExitCode.USAGE, "no iteration 9"),
        (["diff", "1", "x"], ExitCode.USAGE, "no iteration x"),
        (["sessions", "prune"], ExitCode.USAGE, "Missing option '--keep'"),
        (["sessions", "prune", "--keep", "0"], ExitCode.USAGE, "--keep"),
    ],
)
def test_what_is_not_there_is_one_line(
    repository: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: ExitCode, said: str
) -> None:
    assert invoke(words) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [["log"], ["apply"], ["sessions", "list"]])
def test_without_a_repository_or_git_it_is_an_environment_error(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    assert invoke(words) == ExitCode.ENVIRONMENT
    assert "git init" in capsys.readouterr().err
    monkeypatch.setenv("PATH", "")
    assert invoke(words) == ExitCode.ENVIRONMENT
    err = capsys.readouterr().err
    assert "git is not installed" in err
    assert err.count("\n") == 1
