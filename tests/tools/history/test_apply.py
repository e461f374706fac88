"""apply and export: an iteration comes to the user, and never over the user's own edits."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stitch_tui.tools.errors import EnvironmentFault, UsageError
from stitch_tui.tools.history import EditsInTheWay, GitFailed, History

SESSION = "20261129-1402-lenet"
FIRST = {"plan.toml": b"one\n", "kernels/s01.cu": b"first\n"}
SECOND = {"plan.toml": b"two\r\n", "kernels/s02.cu": b"second\n"}


@pytest.fixture
def history(project: Any, record: Any) -> History:
    made: History = record(project, (FIRST, {"title": "first"}), (SECOND, {"title": "second"}))[0]
    return made


def stitched(project: Any) -> dict[str, bytes]:
    root = project.path / "stitched"
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_apply_leaves_ordinary_uncommitted_changes(project: Any, history: History) -> None:
    head, index = project.git("rev-parse", "HEAD"), (project.top / ".git/index").read_bytes()
    applied = history.apply(1)
    assert applied.written == ("stitched/kernels/s01.cu", "stitched/plan.toml")
    assert (applied.removed, applied.overwritten, applied.sha) == ((), (), "")
    assert stitched(project) == FIRST
    assert project.git("rev-parse", "HEAD") == head
    assert (project.top / ".git/index").read_bytes() == index
    assert project.git("status", "--porcelain") == "?? stitched/"


def test_another_iteration_replaces_what_stitch_wrote_and_nothing_else(
    project: Any, history: History
) -> None:
    history.apply(1)
    project.write("stitched/notes.md", "my notes\n")
    applied = history.apply(2)
    assert applied.removed == ("stitched/kernels/s01.cu",)
    assert stitched(project) == SECOND | {"notes.md": b"my notes\n"}
    assert history.apply(2).written == ()


def test_an_emptied_folder_goes_away(project: Any, record: Any) -> None:
    history, _ = record(project, ({"deep/er/k.cu": b"1"}, {}), ({"plan.toml": b"2"}, {}))
    history.apply(1)
    history.apply(2)
    assert not (project.path / "stitched/deep").exists()


def test_the_users_edits_are_named_and_nothing_is_written(project: Any, history: History) -> None:
    history.apply(1)
    project.write("stitched/plan.toml", "mine\n")
    with project.untouched(), pytest.raises(EditsInTheWay, match=r"plan\.toml") as refused:
        history.apply(2)
    assert refused.value.paths == ("plan.toml",)
    assert refused.value.exit_code == 2


def test_an_edited_file_that_the_iteration_lacks_stays(project: Any, history: History) -> None:
    history.apply(1)
    project.write("stitched/kernels/s01.cu", "first, improved by hand\n")
    assert history.apply(2).removed == ()
    assert stitched(project)["kernels/s01.cu"] == b"first, improved by hand\n"


def test_an_edit_that_equals_the_iteration_is_no_conflict(project: Any, history: History) -> None:
    project.write("stitched/plan.toml", b"two\r\n")
    assert history.apply(2).written == ("stitched/kernels/s02.cu",)


def test_a_file_as_in_head_gives_way_and_a_changed_one_does_not(project: Any, record: Any) -> None:
    project.write("stitched/plan.toml", "committed\n")
    project.save()
    history, _ = record(project, (FIRST, {}))
    history.apply(1)
    assert stitched(project) == FIRST
    project.write("stitched/plan.toml", "committed\nand edited\n")
    with pytest.raises(EditsInTheWay):
        history.apply(1)


def test_a_file_that_only_the_index_changed_is_safe_in_the_index(project: Any, history: History) -> None:
    history.apply(1)
    project.write("stitched/plan.toml", "staged\n")
    project.git("add", "stitched/plan.toml")
    with pytest.raises(EditsInTheWay):
        history.apply(2)
    project.write("stitched/plan.toml", FIRST["plan.toml"])
    history.apply(2)
    assert project.git("show", ":stitched/plan.toml") == "staged"


@pytest.mark.parametrize("tree", ["as applied", "gone", "edited"])
def test_a_commit_never_loses_what_the_user_staged(project: Any, history: History, tree: str) -> None:
    project.git("config", "user.email", "grace@example.org")
    project.git("config", "user.name", "Grace")
    history.apply(1, commit=True)
    place = project.write("stitched/plan.toml", "staged\n")
    project.git("add", "stitched/plan.toml")
    if tree == "gone":
        place.unlink()
    else:
        place.write_bytes(FIRST["plan.toml"] if tree == "as applied" else b"edited\n")
    for n in (1, 2):
        with project.untouched(), pytest.raises(EditsInTheWay, match=r"plan\.toml \(staged\)"):
            history.apply(n, commit=True)
    applied = history.apply(2, commit=True, force=True)
    assert applied.kept_in
    kept = {path.name: path.read_text() for path in applied.kept_in.iterdir()}
    assert kept == {"plan.toml.staged": "staged\n"} | ({"plan.toml": "edited\n"} if tree == "edited" else {})
    assert applied.overwritten == ("stitched/plan.toml",)
    assert project.git("status", "--porcelain") == ""


def test_staging_what_was_applied_is_no_edit_whatever_git_makes_of_its_line_ends(
    project: Any, history: History
) -> None:
    for key, value in {"user.email": "g@x", "user.name": "Grace", "core.autocrlf": "input"}.items():
        project.git("config", key, value)
    history.apply(1)
    project.git("add", "--intent-to-add", "stitched")
    history.apply(2)
    project.git("add", "stitched")
    assert history.apply(2, commit=True).sha
    assert history.apply(1, commit=True).removed == ("stitched/kernels/s02.cu",)


def test_line_ends_changed_by_autocrlf_are_not_the_users_edit(project: Any, history: History) -> None:
    history.apply(1)
    project.write("stitched/plan.toml", b"one\r\n")
    history.apply(2)
    assert stitched(project) == SECOND


def test_force_names_what_it_overwrote_and_keeps_a_copy(project: Any, history: History) -> None:
    project.write("stitched/plan.toml", "mine\n")
    applied = history.apply(1, force=True)
    assert applied.overwritten == ("stitched/plan.toml",)
    assert applied.kept_in
    assert (applied.kept_in / "plan.toml").read_text() == "mine\n"
    assert stitched(project) == FIRST
    assert ".stitch" not in project.git("status", "--porcelain")


def test_one_commit_by_the_user_holds_only_stitched(project: Any, history: History) -> None:
    project.git("config", "user.name", "Grace Hopper")
    project.git("config", "user.email", "grace@example.org")
    project.write("staged.py", "x\n")
    project.git("add", "staged.py")
    project.write("stitched/notes.md", "mine\n")
    history.apply(1)
    applied = history.apply(2, commit=True)
    assert applied.sha == project.git("rev-parse", "HEAD")
    assert project.git("log", "-1", "--format=%an|%s|%(trailers:key=Stitch-Applied,valueonly)").split(
        "|"
    ) == [
        "Grace Hopper",
        "Apply stitch: program: iteration 2: second, correct",
        applied.commit.sha,
    ]
    assert project.git("show", "--format=", "--name-only").split("\n") == [
        "stitched/kernels/s02.cu",
        "stitched/plan.toml",
    ]
    assert project.git("status", "--porcelain").split("\n") == ["A  staged.py", "?? stitched/notes.md"]
    assert history.apply(2, commit=True).sha == ""


def test_a_second_apply_commit_removes_what_the_first_one_added(project: Any, history: History) -> None:
    project.git("config", "user.email", "grace@example.org")
    project.git("config", "user.name", "Grace")
    history.apply(1, commit=True)
    history.apply(2, commit=True)
    assert project.git("show", "--format=", "--name-status", "--no-renames").split("\n") == [
        "D\tstitched/kernels/s01.cu",
        "A\tstitched/kernels/s02.cu",
        "M\tstitched/plan.toml",
    ]
    assert project.git("status", "--porcelain") == ""


def test_committing_works_on_an_unborn_head_and_where_stitched_is_ignored(
    make_project: Callable[..., Any], record: Any
) -> None:
    project = make_project(empty=True, folder="net")
    project.git("config", "user.email", "grace@example.org")
    project.git("config", "user.name", "Grace")
    project.write(".gitignore", "stitched/\n")
    history, _ = record(project, (FIRST, {}))
    assert history.apply(1, commit=True).sha
    assert project.git("ls-files") == "net/stitched/kernels/s01.cu\nnet/stitched/plan.toml"


def test_settings_and_variables_that_change_what_git_compares_do_not_matter(
    project: Any, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = {"user.email": "grace@example.org", "user.name": "Grace"}
    odd = {"diff.orderFile": "/nonexistent", "log.follow": "true", "log.showRoot": "false"}
    for key, value in (who | odd).items():
        project.git("config", key, value)
    monkeypatch.setenv("GIT_ATTR_SOURCE", "nonexistent")
    assert "first" in history.diff(1)
    assert history.apply(1).written == ("stitched/kernels/s01.cu", "stitched/plan.toml")
    project.git("config", "--unset", "diff.orderFile")  # with it the user's own git cannot commit
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")
    assert history.apply(2, commit=True).sha
    assert history.apply(2, commit=True).sha == ""


def test_a_commit_of_odd_names_gives_hooks_the_users_own_environment(
    project: Any, record: Any, tmp_path: Path
) -> None:
    project.git("config", "user.email", "grace@example.org")
    project.git("config", "user.name", "Grace")
    odd = {"*.cu": b"1", ":(glob)x": b"2", "a b": b"3"}
    history, _ = record(project, (odd, {}))
    project.write("stitched/other.cu", "mine\n")
    hook = project.write(
        ".git/hooks/pre-commit", f"#!/bin/sh\nenv | grep ^GIT_ > '{tmp_path}/seen'\nexit 0\n"
    )
    hook.chmod(0o755)
    assert history.apply(1, commit=True).sha
    assert project.git("show", "--format=", "--name-only").split("\n") == [f"stitched/{name}" for name in odd]
    seen = (tmp_path / "seen").read_text()
    assert "LITERAL" not in seen
    assert "CONFIG_PARAMETERS" not in seen


def test_the_users_hooks_and_missing_identity_are_honoured(project: Any, history: History) -> None:
    project.git("config", "user.useConfigOnly", "true")
    with pytest.raises(GitFailed, match="auto-detection is disabled"):
        history.apply(1, commit=True)
    project.git("config", "user.email", "grace@example.org")
    project.git("config", "user.name", "Grace")
    hook = project.write(".git/hooks/pre-commit", "#!/bin/sh\necho 'error: no Fridays' >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(GitFailed, match="no Fridays") as failed:
        history.apply(1, commit=True)
    assert stitched(project) == FIRST
    unstage = "git reset -- stitched"
    assert failed.value.advice.startswith("stitched is written and staged, not committed; mend this")
    assert failed.value.advice.endswith(unstage)
    project.git(*unstage.split()[1:])
    assert project.git("status", "--porcelain") == "?? stitched/"
    lock = project.write(".git/index.lock", "")
    with pytest.raises(GitFailed, match="stitched is written, not committed"):
        history.apply(1, commit=True)
    lock.unlink()
    hook.unlink()
    assert history.apply(1, commit=True).sha


@pytest.mark.parametrize("operation", ["merge", "cherry-pick", "revert", "stash pop"])
def test_nothing_is_written_for_a_commit_that_git_would_refuse(
    project: Any, history: History, operation: str
) -> None:
    project.git("switch", "-q", "-c", "other")
    project.write("model.py", "other\n")
    project.save()
    project.git("switch", "-q", "main")
    project.write("model.py", "mine\n")
    project.save()
    if operation == "stash pop":
        project.write("model.py", "stashed\n")
        project.git("stash")
        project.write("model.py", "mine again\n")
        project.save()
    what = {"merge": "other", "cherry-pick": "other", "revert": "HEAD"}.get(operation, "")
    if operation == "revert":
        project.git("revert", "--no-commit", what)
        project.git("update-ref", "REVERT_HEAD", "HEAD")
    else:
        project.git(*operation.split(), *([what] if what else []), check=False)
    said = "conflicts to resolve: model.py" if operation == "stash pop" else f"a {operation} is not finished"
    with project.untouched(), pytest.raises(UsageError, match=said):
        history.apply(1, commit=True)
    assert history.apply(1).written


@pytest.mark.parametrize("link", ["stitched", "stitched/kernels", "stitched/plan.toml"])
def test_a_symbolic_link_is_not_followed(project: Any, history: History, tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "s01.cu").write_bytes(FIRST["kernels/s01.cu"])
    (project.path / link).parent.mkdir(exist_ok=True)
    (project.path / link).symlink_to(outside)
    for n in (1, 2):
        with project.untouched(), pytest.raises(UsageError, match="in the way"):
            history.apply(n)
    assert os.listdir(outside) == ["s01.cu"]


def test_a_folder_where_a_file_belongs_and_the_reverse_are_named(project: Any, history: History) -> None:
    project.write("stitched/plan.toml/x", "")
    with pytest.raises(UsageError, match="in the way of a file"):
        history.apply(1)
    (project.path / "stitched/plan.toml/x").unlink()
    (project.path / "stitched/plan.toml").rmdir()
    os.mkfifo(project.path / "stitched/plan.toml")
    with pytest.raises(UsageError, match="in the way of a file"):
        history.apply(1)
    (project.path / "stitched/plan.toml").unlink()
    project.write("stitched/kernels", "a file")
    with pytest.raises(UsageError, match="in the way of a folder"):
        history.apply(1)


def test_the_best_is_applied_when_none_is_named(project: Any, record: Any) -> None:
    history, _ = record(project, (FIRST, {}), (SECOND, {"verdict": "race", "outcome": "wrong"}))
    assert history.apply().commit.iteration.iteration == 1


def test_a_project_in_a_subfolder_gets_it_there(make_project: Callable[..., Any], record: Any) -> None:
    project = make_project(folder="le net")
    record(project, (FIRST, {}))
    assert History.open(project.top).apply(1).written[0] == "le net/stitched/kernels/s01.cu"
    assert stitched(project) == FIRST


def test_export_writes_the_bundle_and_replaces_only_an_earlier_export(
    project: Any, history: History, tmp_path: Path
) -> None:
    target = tmp_path / "out" / "bundle"
    with project.untouched():
        assert history.export(1, target) == target
        history.export(2, target)
    assert {p.relative_to(target).as_posix() for p in target.rglob("*")} == {
        "plan.toml",
        "kernels",
        "kernels/s02.cu",
    }
    assert os.listdir(target.parent) == ["bundle"]
    (target / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"mine\.txt"):
        history.export(1, target)
    assert (target / "plan.toml").read_bytes() == SECOND["plan.toml"]


def test_export_into_an_empty_folder_and_not_over_an_edit(history: History, tmp_path: Path) -> None:
    target = tmp_path / "empty"
    target.mkdir()
    history.export(1, target)
    (target / "plan.toml").write_text("edited")
    with pytest.raises(UsageError, match=r"plan\.toml"):
        history.export(1, target)


def test_export_to_a_file_a_link_or_below_a_file_is_refused(history: History, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path)
    for target in ("file", "link", "file/below"):
        with pytest.raises(UsageError):
            history.export(1, tmp_path / target)
    assert (tmp_path / "file").read_text() == "x"


def test_a_working_tree_that_cannot_be_written_is_an_environment_fault(
    project: Any, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(EnvironmentFault, match="No space left"):
        history.apply(1)
    assert stitched(project) == {}
