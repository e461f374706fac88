"""Reading: sessions, iterations and the best one, from git alone."""

import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.history import PROGRAM, Commit, Iteration, Kind, Outcome, best_of
from stitch_tui.tools.history.trailers import Origin
from stitch_tui.tools.verdict import Category, Flag

SESSION = "20261129-1402-lenet"


def test_the_log_tells_the_iterations_in_order_with_their_numbers(project: Any, record: Any) -> None:
    history, shas = record(
        project,
        ({"a": b"1"}, {"subtask": "s01", "verdict": "race", "outcome": "wrong"}),
        ({"a": b"2"}, {"subtask": "s01", "time_us": 12.5, "flags": ("partial",)}),
    )
    log = history.log()
    assert [c.sha for c in log] == shas[1:]
    assert [c.iteration.verdict for c in log] == [Category.RACE, Category.CORRECT]
    assert log[1].iteration.time_us == 12.5
    assert log[1].parent == log[0].sha
    assert log[1].time.tzinfo is not None


def test_an_iteration_is_found_by_number_word_and_name(project: Any, record: Any) -> None:
    history, shas = record(project, ({"a": b"1"}, {}), ({"a": b"2"}, {"verdict": "race", "outcome": "wrong"}))
    found = [history.find(n).sha for n in (1, "1", "best", "last", shas[1], shas[2][:8])]
    assert found == [shas[1], shas[1], shas[1], shas[2], shas[1], shas[2]]


@pytest.mark.parametrize("n", [7, "nonsense", "deadbeef", "--all", "best", ""])
def test_an_iteration_that_is_not_there_names_those_that_are(project: Any, record: Any, n: int | str) -> None:
    history, _ = record(project, ({}, {"verdict": "race", "outcome": "wrong"}))
    with pytest.raises(UsageError, match="no iteration") as missing:
        history.show(n)
    assert missing.value.advice == "it has 1, last"


def test_a_session_that_is_not_there_names_the_nearest(project: Any, record: Any) -> None:
    with pytest.raises(UsageError, match=r"no session yet \(start one: stitch --auto\)"):
        project.history.log()
    history, _ = record(project)
    history.start_session("20261130-0900-bert")
    with pytest.raises(UsageError, match=r"no session lenet \(there is 20261129-1402-lenet") as missing:
        history.log("lenet")
    assert missing.value.exit_code == 2
    with pytest.raises(UsageError, match="it has none yet"):
        history.find(1, "20261130-0900-bert")


def test_sessions_are_listed_latest_first_and_foreign_branches_are_not(project: Any, record: Any) -> None:
    history, _ = record(project, ({}, {}))
    history.start_session("20261130-0900-bert")
    project.git("branch", "stitch/mine")
    project.git("branch", "stitch/20270101-0000-copy", f"stitch/{SESSION}")
    assert [s.name for s in history.sessions()] == ["20261130-0900-bert", SESSION]
    assert history.log("20261130-0900-bert") == []
    assert history.best("20261130-0900-bert") is None


def test_a_session_on_top_of_another_counts_only_its_own(project: Any, record: Any, iteration: Any) -> None:
    history, shas = record(project, ({"a": b"1"}, {}))
    started = history.start_session("next", shas[-1])
    history.commit("next", {"a": b"2"}, iteration(1, session="next"), started.sha)
    assert [c.origin.session for c in history.log("next")] == ["next"]
    assert history.files(1, "next") == {"a": b"2"}
    assert history.diff(1, session="next").count("@@") == 2
    with pytest.raises(UsageError, match="belongs to session"):
        history.restore(shas[-1], "next")


def test_a_diff_between_two_iterations_and_of_one(project: Any, record: Any) -> None:
    history, _ = record(project, ({"k.cu": b"a\nb\n"}, {}), ({"k.cu": b"a\nc\n"}, {}), ({}, {}))
    assert history.diff(1, 2).split("\n")[-4:] == [" a", "-b", "+c", ""]
    assert history.diff(2) == history.diff(1, 2)
    assert "new file" in history.diff(1)
    assert "deleted file" in history.diff(2, "last")
    assert history.diff(2, 2) == ""


def test_show_gives_message_files_and_diff(project: Any, record: Any) -> None:
    history, _ = record(project, ({"k.cu": b"\xff\n", "plan.toml": b""}, {"title": "draft"}))
    shown = history.show(1)
    assert shown.message.startswith("program: iteration 1: draft, correct\n\nStitch-Session:")
    assert shown.files == ("k.cu", "plan.toml")
    assert "k.cu" in shown.diff


def forge(project: Any, message: str, path: str = "stitched") -> str:
    """A commit that nobody's stitch wrote, with a tree that holds a file at the odd place `path`."""

    def feed(text: bytes, *args: str) -> str:
        command = ["git", "-c", "user.name=M", "-c", "user.email=m@m", *args]
        done = subprocess.run(command, cwd=project.top, input=text, capture_output=True, check=True)
        return done.stdout.decode().strip()

    blob = feed(b"evil\n", "hash-object", "-w", "--stdin")
    inner = bytes.fromhex(blob)
    tree = feed(
        b"100644 " + path.encode() + b"\0" + inner,
        "hash-object",
        "-w",
        "-t",
        "tree",
        "--literally",
        "--stdin",
    )
    outer = feed(f"040000 tree {tree}\tstitched\n".encode(), "mktree")
    sha = feed(message.encode(), "commit-tree", "-F", "-", outer)
    project.git("update-ref", f"refs/heads/stitch/{SESSION}", sha)
    return sha


TOLD = f"x\n\nStitch-Session: {SESSION}\nStitch-Iteration: 1\nStitch-Kind: draft\nStitch-Outcome: kept\n"


@pytest.mark.parametrize(
    "message",
    [
        TOLD + "Stitch-Kind: draft\n",
        TOLD + "Stitch-Folder: ../../up\n",
        TOLD + "Stitch-Base: --output=x\n",
        TOLD.replace("draft", "nonsense"),
        TOLD.replace("Iteration: 1", "Iteration: -1"),
        TOLD + "Stitch-Coverage: 7\n",
        "no trailers\n",
    ],
)
def test_a_forged_commit_is_passed_over(project: Any, message: str) -> None:
    forge(project, message, "k.cu")
    assert project.history.sessions() == []


def test_a_forged_tree_cannot_lead_out_of_stitched(project: Any) -> None:
    forge(project, TOLD, "..")
    for action in (project.history.files, project.history.apply):
        with pytest.raises(UsageError, match="leaves stitched/"):
            action(1)


def committed(entry: Iteration) -> Commit:
    return Commit(str(entry.iteration), "", "", datetime.now(UTC), Origin("s", ""), entry)


def told(number: int, **fields: Any) -> Commit:
    usual = {"kind": Kind.OPTIMISE, "outcome": Outcome.KEPT, "verdict": Category.CORRECT}
    return committed(Iteration.model_validate({"session": "s", "iteration": number} | usual | fields))


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (told(1, speedup_best_baseline=0.9), told(2, subtask="s01", coverage=0.9, speedup_eager=9)),
        (
            told(1, speedup_best_baseline=1.2, speedup_eager=1),
            told(2, speedup_best_baseline=1.1, speedup_eager=3),
        ),
        (told(1, speedup_best_baseline=1.2), told(2, speedup_eager=3)),
        (told(1, speedup_eager=1.2), told(2, speedup_eager=1.1)),
        (told(1, subtask="s01", coverage=0.5), told(2, subtask="s02", coverage=0.4, speedup_eager=9)),
        (told(2, flags=(Flag.FUNCTIONAL,)), told(1, flags=(Flag.FUNCTIONAL,))),
        (told(1), told(2, flags=(Flag.QUARANTINED,), speedup_best_baseline=99)),
        (told(1), told(2, verdict=Category.RACE)),
        (told(1), told(2, verdict=None)),
        (told(1), told(2, outcome=Outcome.REDIRECTED)),
        (told(1, subtask="s01"), told(2, subtask="s01", outcome=Outcome.SLOWER, coverage=1)),
        (told(1), told(2, kind=Kind.RESTORE, restores=1, speedup_best_baseline=2)),
        (told(1, outcome=Outcome.SLOWER), told(2, subtask="s01", coverage=1)),
    ],
)
def test_the_rule_for_the_best(better: Commit, worse: Commit) -> None:
    assert best_of([better, worse]) is best_of([worse, better]) is better


def test_a_host_program_that_was_kept_stands_for_the_program_before_it() -> None:
    stitched = told(1, kind=Kind.INTEGRATE, speedup_best_baseline=1.3)
    kept = told(2, kind=Kind.PROGRAM, speedup_best_baseline=1.25)
    slower = told(3, kind=Kind.PROGRAM, outcome=Outcome.SLOWER, speedup_best_baseline=1.4)
    assert best_of([stitched, kept, slower]) is kept, "measured side by side, whatever two runs say"
    assert best_of([stitched, slower]) is stitched
    again = told(4, kind=Kind.INTEGRATE, speedup_best_baseline=1.5)
    assert best_of([stitched, kept, again]) is again


@given(
    st.lists(
        st.builds(
            told,
            st.integers(0, 50),
            subtask=st.sampled_from([PROGRAM, "s01"]),
            verdict=st.sampled_from([None, Category.CORRECT, Category.NUMERICS]),
            outcome=st.sampled_from(Outcome),
            speedup_eager=st.none() | st.floats(0.1, 10),
            coverage=st.none() | st.floats(0, 1),
        )
    )
)
def test_the_best_is_correct_and_does_not_depend_on_order(commits: list[Commit]) -> None:
    best = best_of(commits)
    assert best is None or (best.iteration.correct and best in commits)
    unique = {c.iteration.iteration: c for c in commits}
    assert best_of(unique.values()) == best_of(reversed(list(unique.values())))


def test_reading_needs_no_stitch_folder(project: Any, record: Any, make_project: Callable[..., Any]) -> None:
    history, _ = record(project, ({"a": b"1"}, {}))
    assert not (project.path / ".stitch").exists()
    assert history.best().iteration.iteration == 1
