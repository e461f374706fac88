"""Writing: each iteration lands on the session's branch, byte for byte, and two writers notice each other."""

from collections.abc import Callable
from typing import Any

import pytest

from stitch_tui.tools.errors import EnvironmentFault, UsageError
from stitch_tui.tools.history import BranchMoved, History, Iteration, Kind, Part

SESSION = "20261129-1402-lenet"
BRANCH = f"refs/heads/stitch/{SESSION}"
BUNDLE = {"plan.toml": b"[plan]\n", "kernels/s01.cu": b"__global__ void k() {}\n"}


def test_an_iteration_is_one_commit_on_the_sessions_branch(project: Any, record: Any) -> None:
    with project.untouched():
        _, shas = record(project, (BUNDLE, {"subtask": "s01", "title": "first"}))
    assert project.git("rev-parse", BRANCH) == shas[-1]
    assert project.git("log", "--format=%s", BRANCH).split("\n") == [
        "s01: iteration 1: first, correct",
        f"{SESSION}: session started",
        "work",
    ]
    assert project.git("log", "-1", "--format=%(trailers:key=Stitch-Base,valueonly)", BRANCH) == (
        project.git("rev-parse", "main")
    )


def test_stitched_is_the_only_difference_to_the_base(project: Any, record: Any) -> None:
    project.write("stitched/old.cu", "old\n")
    project.save()
    record(project, (BUNDLE, {}), ({"plan.toml": b"second\n"}, {}))
    changed = project.git("diff", "--name-status", "main", BRANCH).split("\n")
    assert changed == ["D\tstitched/old.cu", "A\tstitched/plan.toml"]


def test_a_commit_by_someone_else_on_the_branch_does_not_leak_into_the_tree(
    project: Any, record: Any
) -> None:
    history, shas = record(project, (BUNDLE, {}))
    project.git("switch", "-q", f"stitch/{SESSION}")
    project.write("mine.txt", "mine\n")
    theirs = project.save("a note of my own")
    project.git("switch", "-q", "main")
    assert [c.sha for c in history.log()] == shas[1:]
    assert history.tip(SESSION) is None
    sealed = history.restore(1)
    assert sealed.parent == theirs
    assert project.git("ls-tree", "-r", "--name-only", BRANCH) == (
        "model.py\nstitched/kernels/s01.cu\nstitched/plan.toml"
    )


@pytest.mark.parametrize(
    "files",
    [
        {"a": b"1", "a/b": b"2"},
        {"../model.py": b""},
        {"/etc/passwd": b""},
        {".git/hooks/post-commit": b""},
        {"a\nb": b""},
    ],
)
def test_an_unsound_path_is_refused(
    project: Any, record: Any, iteration: Callable[..., Iteration], files: dict[str, bytes]
) -> None:
    history, shas = record(project)
    with pytest.raises(UsageError):
        history.commit(SESSION, files, iteration(1), shas[-1])
    assert project.git("rev-parse", BRANCH) == shas[-1]


def test_any_bytes_and_any_name_survive(project: Any, record: Any) -> None:
    odd = {
        "kernels/größe und höhe.cu": b"\r\n\x00\xff\r",
        "-n": b"",
        'a"b\\c': b"x",
        ":(glob)*": b"y",
        "*.cu": b"no newline at the end",
    }
    history, _ = record(project, (odd, {}))
    assert history.files(1) == odd


def test_an_empty_bundle_removes_stitched(project: Any, record: Any) -> None:
    history, _ = record(project, (BUNDLE, {}), ({}, {}))
    assert history.files(2) == {}
    assert project.git("ls-tree", "--name-only", BRANCH) == "model.py"


def test_a_file_named_stitched_in_the_base_gives_way(project: Any, record: Any) -> None:
    project.write("stitched", "a file\n")
    project.save()
    history, _ = record(project, (BUNDLE, {}))
    assert history.files(1) == BUNDLE


def test_a_lost_race_names_the_other_writers_commit(
    project: Any, record: Any, iteration: Callable[..., Iteration]
) -> None:
    first, shas = record(project)
    second = project.history
    won = second.commit(SESSION, BUNDLE, iteration(1, title="the other"), shas[-1])
    with project.untouched(), pytest.raises(BranchMoved) as lost:
        first.commit(SESSION, {"plan.toml": b"mine"}, iteration(1, title="mine"), shas[-1])
    assert lost.value.theirs == won
    assert won[:12] in str(lost.value)
    assert project.git("rev-parse", BRANCH) == won


def test_a_branch_deleted_meanwhile_is_a_lost_race(
    project: Any, record: Any, iteration: Callable[..., Iteration]
) -> None:
    history, shas = record(project)
    project.git("branch", "-D", f"stitch/{SESSION}")
    with pytest.raises(BranchMoved) as lost:
        history.commit(SESSION, BUNDLE, iteration(1), shas[-1])
    assert lost.value.theirs == ""


def test_a_second_session_of_the_same_name_is_refused(project: Any, record: Any) -> None:
    _, shas = record(project)
    with pytest.raises(BranchMoved) as lost:
        project.history.start_session(SESSION)
    assert lost.value.theirs == shas[-1]


@pytest.mark.parametrize("name", ["", "a b", "x.lock", "-d", "a/b", "../x"])
def test_a_bad_session_name_is_refused(project: Any, name: str) -> None:
    with pytest.raises(UsageError, match="not a session name"):
        project.history.start_session(name)


@pytest.mark.parametrize("base", ["nowhere", "--all", "main:model.py"])
def test_a_base_that_is_no_commit_is_refused(project: Any, base: str) -> None:
    with pytest.raises(UsageError, match="no such commit"):
        project.history.start_session(SESSION, base)


def test_a_session_starts_from_the_base_it_is_given(project: Any) -> None:
    old = project.git("rev-parse", "HEAD")
    project.write("later.py", "")
    project.save()
    started = project.history.start_session(SESSION, "HEAD~1")
    assert started.origin.base == old
    assert project.git("ls-tree", "--name-only", BRANCH) == "model.py"


def test_a_branch_named_stitch_moves_sessions_to_another_prefix_and_says_so(
    project: Any, iteration: Callable[..., Iteration]
) -> None:
    project.git("branch", "stitch")
    history: History = project.history
    with project.untouched():
        started = history.start_session(SESSION)
        history.commit(SESSION, BUNDLE, iteration(1), started.sha)
    assert started.branch == f"stitch-sessions/{SESSION}"
    assert "stitch-sessions/" in started.notice
    assert project.history.files(1) == BUNDLE
    project.git("branch", "-m", f"stitch-sessions/{SESSION}", "aside")
    project.git("branch", "stitch-sessions")
    with pytest.raises(EnvironmentFault, match="branch_prefix"):
        history.start_session("another")


def test_another_prefix_can_be_chosen(project: Any) -> None:
    history = History.open(project.path, prefix="kernels")
    assert history.start_session(SESSION).branch == f"kernels/{SESSION}"
    assert [s.name for s in history.sessions()] == [SESSION]
    assert project.history.sessions() == []


def test_a_checked_out_session_branch_is_never_moved(
    project: Any, record: Any, iteration: Callable[..., Iteration]
) -> None:
    history, shas = record(project, (BUNDLE, {}))
    project.git("switch", "-q", f"stitch/{SESSION}")
    before = project.snapshot()
    with pytest.raises(EnvironmentFault, match="switch --detach"):
        history.commit(SESSION, {}, iteration(2), shas[-1])
    with pytest.raises(EnvironmentFault, match="checked out"):
        history.delete(SESSION)
    assert project.snapshot() == before
    project.git("switch", "-q", "--detach")
    history.commit(SESSION, {}, iteration(2), shas[-1])


def test_an_iteration_of_another_session_is_refused(
    project: Any, record: Any, iteration: Callable[..., Iteration]
) -> None:
    history, shas = record(project)
    with pytest.raises(UsageError):
        history.commit(SESSION, BUNDLE, iteration(1, session="other"), shas[-1])


def test_restore_rolls_forward_and_keeps_the_numbers(project: Any, record: Any) -> None:
    history, shas = record(
        project, ({"a": b"1"}, {"speedup_eager": 2.0, "reference_sha256": "0f" * 32}), ({"a": b"2"}, {})
    )
    with project.untouched():
        commit = history.restore(1, decision="restored by human")
    assert commit.parent == shas[-1]
    assert history.files("last") == {"a": b"1"}
    entry = commit.iteration
    assert (entry.iteration, entry.kind, entry.restores) == (3, Kind.RESTORE, 1)
    assert (entry.speedup_eager, entry.reference_sha256) == (2.0, "0f" * 32)
    assert entry.decision == "restored by human"


def test_undo_goes_back_one_more_each_time_until_the_start(project: Any, record: Any) -> None:
    project.write("stitched/a", "base")
    project.save()
    history, _ = record(project, *(({"a": b"%d" % n}, {}) for n in (1, 2, 3)))
    seen = []
    for _ in range(3):
        history.undo()
        seen.append(history.files("last"))
    assert seen == [{"a": b"2"}, {"a": b"1"}, {"a": b"base"}]
    with pytest.raises(UsageError, match="nothing to undo"):
        history.undo()
    history.restore(3)
    history.undo()
    assert history.files("last") == {"a": b"2"}


def test_seal_ends_the_branch_with_the_best(project: Any, record: Any) -> None:
    history, shas = record(
        project,
        ({"a": b"1"}, {"speedup_best_baseline": 1.5}),
        ({"a": b"2"}, {"speedup_best_baseline": 1.1, "outcome": "slower"}),
    )
    sealed = history.seal()
    assert sealed
    assert sealed.parent == shas[-1]
    assert sealed.iteration.subject == "program: iteration 3: ends with iteration 1, correct (best)"
    assert history.files("last") == {"a": b"1"}
    assert history.seal() == sealed
    best = history.best()
    assert best
    assert best.iteration.iteration == 1


def test_seal_leaves_a_session_without_a_correct_iteration_alone(project: Any, record: Any) -> None:
    history, shas = record(project, ({"a": b"1"}, {"verdict": "race", "outcome": "wrong"}))
    assert history.seal() is None
    assert history.sessions()[0].tip == shas[-1]


def test_a_deleted_session_can_be_brought_back_from_the_commit_it_names(project: Any, record: Any) -> None:
    history, shas = record(project, (BUNDLE, {}))
    with project.untouched():
        assert history.delete(SESSION) == shas[-1]
    assert history.sessions() == []
    project.git("branch", f"stitch/{SESSION}", shas[-1])
    assert history.files(1) == BUNDLE


@pytest.mark.parametrize(
    ("part", "files"),
    [
        (Part.PLAN, {"plan.toml": b"1", "kernels/b.cu": b"2"}),
        (Part.CODE, {"plan.toml": b"2", "kernels/a.cu": b"1"}),
    ],
)
def test_restoring_a_part_leaves_the_rest_and_claims_no_verdict(
    project: Any, record: Any, part: Part, files: dict[str, bytes]
) -> None:
    first, second = ({"plan.toml": b"1", "kernels/a.cu": b"1"}, {"plan.toml": b"2", "kernels/b.cu": b"2"})
    history, _ = record(project, (first, {"speedup_eager": 2.0}), (second, {}))
    entry = history.restore(1, part=part).iteration
    assert history.files("last") == files
    assert (entry.kind, entry.verdict, entry.speedup_eager) == (Kind.HUMAN, None, None)
    assert entry.title == f"restore the {part} of iteration 1"
    history.undo()
    assert history.files("last") == second


def test_old_sessions_are_neither_the_latest_nor_those_in_use(project: Any) -> None:
    history: History = project.history
    shas = {name: history.start_session(name).sha for name in ("a1", "a2", "a3", "a4")}
    project.git("switch", "-q", "stitch/a1")
    with project.untouched():
        (old,) = history.old(2)
        assert history.delete(old.name) == shas["a2"]
        assert history.old(2) == []
    assert {s.name for s in history.sessions()} == {"a1", "a3", "a4"}
