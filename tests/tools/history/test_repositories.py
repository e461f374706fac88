"""Every kind of repository and environment: the commit lands, the user's things stay byte for byte."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stitch_tui.tools.errors import EnvironmentFault, UsageError
from stitch_tui.tools.history import BranchMoved, GitFailed, History, Iteration

SESSION = "20261129-1402-lenet"
BRANCH = f"refs/heads/stitch/{SESSION}"
BUNDLE = {"plan.toml": b"[plan]\r\n", "kernels/s01.cu": b"__global__ void k() {}\n"}
HOOKS = (
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit"),
    *("prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge"),
    *("pre-push", "post-rewrite", "reference-transaction", "post-index-change", "pre-auto-gc"),
    *("push-to-checkout", "fsmonitor-watchman"),
)


def whole_life(project: Any, record: Any) -> History:
    """Write, read, undo and seal a session; assert that nothing of the user's changed."""
    with project.untouched():
        history: History = record(project, (BUNDLE, {"speedup_eager": 2.0}), ({"plan.toml": b"2"}, {}))[0]
        history.undo()
        history.seal()
        assert [c.iteration.iteration for c in history.log()] == [1, 2, 3]
        assert history.files(1) == BUNDLE
        assert "kernels/s01.cu" in history.diff(1)
        assert history.show(2).files == ("plan.toml",)
    return history


def test_a_dirty_tree_with_staged_changes_and_a_stash_stays_as_it_is(project: Any, record: Any) -> None:
    project.write("model.py", "stashed\n")
    project.git("stash")
    project.write("model.py", "staged\n")
    project.write("new.py", "intended\n")
    project.git("add", "model.py")
    project.git("add", "-N", "new.py")
    project.write("model.py", "dirty\n")
    project.write("untracked.py", "")
    project.write("stitched/plan.toml", "the user's own\n")
    whole_life(project, record)


def test_an_unborn_head_gets_a_root_commit(make_project: Callable[..., Any], record: Any) -> None:
    project = make_project(empty=True)
    project.write("model.py", "not committed\n")
    project.git("add", "model.py")
    history = whole_life(project, record)
    assert history.session().origin.base == ""
    assert (
        project.git("rev-list", "--max-parents=0", BRANCH) == project.git("rev-list", BRANCH).split("\n")[-1]
    )
    assert project.git("rev-parse", "--verify", "--quiet", "HEAD", check=False) == ""


def test_a_detached_head(project: Any, record: Any) -> None:
    project.git("switch", "-q", "--detach")
    whole_life(project, record)


def test_a_linked_worktree_shares_its_sessions_with_the_main_one(
    project: Any, record: Any, tmp_path: Path
) -> None:
    project.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = type(project)(tmp_path / "side")
    with project.untouched():
        whole_life(side, record)
    assert project.history.files(1) == BUNDLE


def test_a_submodule_keeps_its_own_history(
    make_project: Callable[..., Any], record: Any, tmp_path: Path
) -> None:
    make_project("library")
    outer = make_project("outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "library"), "sub")
    outer.save()
    with outer.untouched():
        whole_life(type(outer)(outer.top / "sub"), record)
    assert outer.history.sessions() == []
    with outer.untouched():
        record(outer, (BUNDLE, {}))
    assert outer.git("ls-tree", BRANCH, "sub").startswith("160000 commit")


@pytest.mark.parametrize("name", ["größe 漢字 '\"$x", "-dash=b"])
def test_a_path_with_spaces_and_unicode(make_project: Callable[..., Any], record: Any, name: str) -> None:
    whole_life(make_project(name), record)


def test_a_project_in_a_subfolder_keeps_its_bundle_there(
    make_project: Callable[..., Any], record: Any
) -> None:
    project = make_project(folder="models/le net")
    history = whole_life(project, record)
    assert project.git("ls-tree", "-r", "--name-only", f"{BRANCH}") == (
        "models/le net/model.py\nmodels/le net/stitched/kernels/s01.cu\nmodels/le net/stitched/plan.toml"
    )
    assert History.open(project.top).files(1) == history.files(1) == BUNDLE


def test_the_latest_session_of_a_folder_is_its_own(make_project: Callable[..., Any], record: Any) -> None:
    project = make_project(folder="one")
    record(project, (BUNDLE, {}))
    (project.top / "two").mkdir()
    other = History.open(project.top / "two")
    assert other.session().name == SESSION
    other.start_session("20990101-0000-two")
    assert other.session().name == "20990101-0000-two"
    assert project.history.session().name == SESSION


def author(project: Any) -> str:
    return str(project.git("log", "-1", "--format=%an <%ae> | %cn <%ce>", BRANCH))


def test_without_any_identity_stitch_signs_with_its_own_name(project: Any, record: Any) -> None:
    whole_life(project, record)
    assert author(project) == "stitch <stitch@localhost> | stitch <stitch@localhost>"


def test_the_repositorys_identity_is_honoured(project: Any, record: Any) -> None:
    project.git("config", "user.name", "Grace Hopper")
    project.git("config", "user.email", "grace@example.org")
    whole_life(project, record)
    assert author(project) == "Grace Hopper <grace@example.org> | Grace Hopper <grace@example.org>"


def test_the_environments_identity_is_honoured_and_its_date_is_not(
    project: Any, record: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Edsger")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "e@example.org")
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2001-01-01T00:00:00Z")
    record(project, (BUNDLE, {}))
    assert author(project) == "Edsger <e@example.org> | stitch <stitch@localhost>"
    assert not project.git("log", "-1", "--format=%aI", BRANCH).startswith("2001")


def test_a_configured_author_wins(project: Any) -> None:
    History.open(project.path, author="Bot of Ada <bot@example.org>").start_session(SESSION)
    assert author(project) == "Bot of Ada <bot@example.org> | stitch <stitch@localhost>"
    with pytest.raises(UsageError, match="Name <mail>"):
        History.open(project.path, author="no mail").start_session("other")


def test_no_hook_runs(project: Any, record: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fired = tmp_path / "fired"
    for hook in HOOKS:
        script = project.write(f".git/hooks/{hook}", f"#!/bin/sh\necho {hook} >> '{fired}'\nexit 1\n")
        script.chmod(0o755)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(project.top / ".git/hooks"))
    before = record(project, (BUNDLE, {}), ({}, {}))[0]
    before.undo()
    before.seal()
    assert not fired.exists()


def test_signing_with_a_broken_gpg_is_not_asked_for(project: Any, record: Any) -> None:
    for key, value in {"commit.gpgsign": "true", "tag.gpgsign": "true", "gpg.program": "/bin/false"}.items():
        project.git("config", key, value)
    whole_life(project, record)


def test_a_signed_commit_on_the_branch_is_read_without_gpg(project: Any, record: Any, tmp_path: Path) -> None:
    _, shas = record(project, (BUNDLE, {}))
    gpg = tmp_path / "gpg"
    gpg.write_text(f"#!/bin/sh\ntouch '{tmp_path}/fired'\necho gpg: good >&2\nexit 0\n")
    gpg.chmod(0o755)
    project.git("config", "gpg.program", str(gpg))
    project.git("config", "log.showSignature", "true")
    head, _, body = project.git("cat-file", "commit", shas[-1]).partition("\n\n")
    seal = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    (tmp_path / "signed").write_text(f"{head}\n{seal}\n\n{body}\n")
    signed = project.git("hash-object", "-w", "-t", "commit", str(tmp_path / "signed"))
    project.git("update-ref", BRANCH, signed)
    assert [c.sha for c in project.history.log()] == [signed]
    assert project.history.show(1).message.startswith("program: iteration 1")
    assert not (tmp_path / "fired").exists()


def test_line_ends_are_never_converted(project: Any, record: Any) -> None:
    project.git("config", "core.autocrlf", "true")
    project.git("config", "core.safecrlf", "true")
    project.write(".gitattributes", "* text=auto\n*.cu text eol=crlf\n*.toml ident filter=shout\n")
    project.git("config", "filter.shout.clean", "tr a-z A-Z")
    project.git("config", "filter.shout.smudge", "tr a-z A-Z")
    whole_life(project, record)


def test_a_configured_fsmonitor_and_odd_indexes_are_left_alone(
    project: Any, record: Any, tmp_path: Path
) -> None:
    fired = tmp_path / "fired"
    monitor = tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch '{fired}'\nexit 1\n")
    monitor.chmod(0o755)
    for key, value in {
        "core.fsmonitor": str(monitor),
        "core.splitIndex": "true",
        "index.version": "4",
    }.items():
        project.git("config", key, value)
    history, _ = record(project, (BUNDLE, {}))
    history.undo()
    assert not fired.exists()
    assert not list((project.top / ".git").glob("sharedindex.*"))


def test_display_settings_do_not_change_what_is_read(project: Any, record: Any) -> None:
    settings = {
        "color.ui": "always",
        "diff.noprefix": "true",
        "diff.external": "/bin/false",
        "log.date": "relative",
        "log.decorate": "full",
        "log.showRoot": "false",
        "format.pretty": "oneline",
        "core.quotePath": "true",
        "i18n.logOutputEncoding": "latin1",
        "trailer.separators": "=",
        "core.commentChar": "S",
    }
    for key, value in settings.items():
        project.git("config", key, value)
    history = record(project, ({"größe.cu": b"x\n"}, {"title": "größer"}))[0]
    assert history.log()[0].iteration.title == "größer"
    assert history.diff(1).split("\n")[0] == "diff --git a/größe.cu b/größe.cu"


def test_a_sha256_repository(make_project: Callable[..., Any], record: Any) -> None:
    project = make_project("repo", "--object-format=sha256")
    history = whole_life(project, record)
    assert len(history.log()[0].sha) == 64
    project.write("stitched/plan.toml", BUNDLE["plan.toml"])
    assert history.apply(2).written == ("stitched/plan.toml",)


def test_variables_of_the_users_environment_do_not_leak_in(
    project: Any, make_project: Callable[..., Any], record: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_project("other")
    with other.untouched(), project.untouched(), monkeypatch.context() as patch:
        patch.setenv("GIT_DIR", str(other.top / ".git"))
        patch.setenv("GIT_WORK_TREE", str(other.top))
        patch.setenv("GIT_INDEX_FILE", str(other.top / "stolen-index"))
        patch.setenv("GIT_OBJECT_DIRECTORY", str(other.top / "stolen-objects"))
        patch.setenv("GIT_NAMESPACE", "elsewhere")
        patch.setenv("GIT_EXTERNAL_DIFF", "/bin/false")
        patch.setenv("GIT_ICASE_PATHSPECS", "1")
        history, _ = record(project, (BUNDLE, {}))
        assert history.files(1) == BUNDLE
        assert "kernels" in history.diff(1)
    assert project.git("rev-parse", BRANCH)
    assert other.git("for-each-ref", "refs/heads/stitch") == ""


def test_a_plain_clone_reads_shows_applies_and_goes_on(
    project: Any, record: Any, tmp_path: Path, iteration: Callable[..., Iteration]
) -> None:
    _, shas = record(project, (BUNDLE, {"title": "first"}), ({"plan.toml": b"2"}, {}))
    project.git("clone", "-q", str(project.top), str(tmp_path / "clone"))
    clone = type(project)(tmp_path / "clone")
    history = clone.history
    with clone.untouched():
        session = history.session()
        assert session.ref == f"refs/remotes/origin/stitch/{SESSION}"
        assert [c.sha for c in history.log()] == shas[1:]
        assert history.files(1) == BUNDLE
        assert "first" in history.show(1).message
        with pytest.raises(UsageError, match="not a branch of this repository"):
            history.delete(SESSION)
        with pytest.raises(BranchMoved):
            history.commit(SESSION, BUNDLE, iteration(3), shas[1])
        restored = history.restore(1)
    assert clone.git("rev-parse", BRANCH) == restored.sha
    assert restored.parent == shas[-1]
    assert history.session().local
    assert history.apply(1).written == ("stitched/kernels/s01.cu", "stitched/plan.toml")


def test_a_clone_with_a_branch_named_stitch_goes_on_under_another_prefix(
    project: Any, record: Any, tmp_path: Path
) -> None:
    record(project, (BUNDLE, {}))
    project.git("clone", "-q", str(project.top), str(tmp_path / "clone"))
    clone = type(project)(tmp_path / "clone")
    clone.git("branch", "stitch")
    restored = clone.history.restore(1)
    assert clone.history.session().ref == f"refs/heads/stitch-sessions/{SESSION}"
    assert clone.history.session().tip == restored.sha


def test_a_shallow_clone_without_the_base_still_reads(project: Any, record: Any, tmp_path: Path) -> None:
    record(project, (BUNDLE, {}))
    source = f"file://{project.top}"
    project.git("clone", "-q", "--depth=1", "--branch", f"stitch/{SESSION}", source, str(tmp_path / "clone"))
    assert History.open(tmp_path / "clone").files(1) == BUNDLE


def test_no_repository_offers_git_init(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(EnvironmentFault, match=r"git init '.*plain'"):
        History.open(tmp_path / "plain")


def test_importing_the_history_imports_no_git() -> None:
    code = "import sys, stitch_tui.tools.history; sys.exit('git' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])


def test_a_missing_folder_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        History.open(tmp_path / "absent")


def test_no_git_at_all(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EnvironmentFault, match="git is not installed"):
        History.open(project.path)


def test_a_bare_repository_and_a_git_folder_are_refused(project: Any, tmp_path: Path) -> None:
    project.git("clone", "-q", "--bare", str(project.top), str(tmp_path / "bare.git"))
    for place in (tmp_path / "bare.git", project.top / ".git"):
        with pytest.raises(EnvironmentFault, match="no working tree"):
            History.open(place)


@pytest.mark.parametrize("folder", ["a\tb", " lead"])
def test_a_folder_that_no_trailer_can_carry_is_refused(make_project: Callable[..., Any], folder: str) -> None:
    with pytest.raises(UsageError, match="cannot stand in a commit message"):
        History.open(make_project(folder=folder).path)


@pytest.fixture
def foreign(project: Any) -> Iterator[Path]:
    """A repository that belongs to `nobody`, outside of pytest's private folders."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        copy = Path(place) / "repo"
        shutil.copytree(project.top, copy)
        yield copy


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository away")
def test_dubious_ownership_is_told_in_gits_own_words(foreign: Path) -> None:
    subprocess.run(["chown", "-R", "65534", str(foreign)], check=True)
    with pytest.raises(EnvironmentFault, match=r"dubious ownership.*safe\.directory") as refused:
        History.open(foreign)
    assert refused.value.what == "git does not trust this repository"


@pytest.fixture
def read_only(foreign: Path) -> Iterator[Path]:
    """A repository whose .git cannot be written, seen by a user who is not root."""
    for place in [foreign / ".git", *(foreign / ".git").rglob("*")]:
        place.chmod(0o555 if place.is_dir() else 0o444)
    if os.geteuid() != 0:
        yield foreign
        return
    subprocess.run(["chown", "-R", "65534", str(foreign)], check=True)
    os.seteuid(65534)
    try:
        yield foreign
    finally:
        os.seteuid(0)


def test_a_read_only_repository_is_an_environment_fault_with_advice(
    read_only: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nowhere")
    history = History.open(read_only)
    assert history.sessions() == []
    with pytest.raises(GitFailed, match="writable") as fault:
        history.start_session(SESSION)
    assert fault.value.exit_code == 3
