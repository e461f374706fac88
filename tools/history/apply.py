"""Bring an iteration's `stitched/` to the user: into their working tree, or exported to a folder.

A file counts as stitch's own when its content is that of HEAD or of a version that a session wrote; all
else in the way is the user's, and is never overwritten without being asked, named and kept aside.
"""

import hashlib
import os
import shlex
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools.atomic_write import replace_file
from stitch_tui.tools.errors import EnvironmentFault, UsageError
from stitch_tui.tools.history.folders import state_folder
from stitch_tui.tools.history.read import Commit, Session, contents, files
from stitch_tui.tools.history.repository import Answer, GitFailed, Repository, failed
from stitch_tui.tools.history.trailers import safe_path

Known = dict[str, set[str]]
"""Path below `stitched/` -> object names of its content in HEAD or any session."""


class EditsInTheWay(UsageError):
    """The user's own edits would be overwritten; `paths` names them."""

    def __init__(self, folder: Path, edited: Collection[str], staged: Collection[str] = ()) -> None:
        named = [*sorted(edited), *(f"{path} (staged)" for path in sorted(staged))]
        super().__init__(
            f"your own edits are in the way: {', '.join(named)}",
            where=str(folder),
            why="they are not in HEAD or in any iteration",
            advice="commit or move them, or use --force, which keeps a copy in .stitch/",
        )
        self.paths = tuple(sorted({*edited, *staged}))


@dataclass(frozen=True)
class Applied:
    """What apply did to the working tree; paths are relative to the repository's top level."""

    commit: Commit
    written: tuple[str, ...]
    removed: tuple[str, ...]
    overwritten: tuple[str, ...] = ()
    """The user's edits that `force` replaced; their copies lie in `kept_in`, staged ones as NAME.staged."""
    kept_in: Path | None = None
    sha: str = ""
    """The commit on the user's branch; empty when none was asked for or nothing differed from HEAD."""


def known_versions(repository: Repository, sessions: Collection[Session], tree: str) -> Known:
    """Every version of each file below the path `tree` that HEAD or a session holds."""
    known: Known = {}
    head = repository.ask("ls-tree", "-r", "-z", "HEAD", "--", tree)
    for line in _records(head.out) if head.status == 0 else []:
        kind, _, path = line.partition("\t")
        known.setdefault(path.removeprefix(f"{tree}/"), set()).add(kind.split(" ")[2])
    tips, bases = [s.tip for s in sessions], [s.origin.base for s in sessions if s.origin.base]
    walk = ["--first-parent", "--ignore-missing", *tips, *(["--not", *bases] if bases else [])]
    if tips:
        raw = repository.git(
            "log", "-z", "--raw", "--no-abbrev", "--no-renames", "--format=", *walk, "--", tree
        )
        records = _records(raw)
        for kind, path in zip(records[::2], records[1::2], strict=True):
            known.setdefault(path.removeprefix(f"{tree}/"), set()).update(kind.split(" ")[2:4])
    return {path: names for path, names in known.items() if safe_path(path)}


def _records(out: bytes) -> list[str]:
    return [record for record in out.decode("utf-8", "surrogateescape").split("\0") if record]


def into_working_tree(
    repository: Repository, commit: Commit, known: Known, *, as_commit: bool = False, force: bool = False
) -> Applied:
    """Make `stitched/` in the user's tree that of `commit`: uncommitted changes, or one commit of theirs.

    Files there that stitch does not know stay as they are; the index is touched by `as_commit` only, and
    then what the user staged counts as their edit too.

    Raises:
        EditsInTheWay: and nothing was written.
        UsageError: a symbolic link leads out of the working tree, or git cannot commit now: a merge is open.
        EnvironmentFault: git could not commit (a hook, no identity); the files are written.
    """
    if as_commit:
        _require_no_merge(repository)
    root, wanted = repository.top / commit.origin.tree, files(repository, commit)
    _require_way(repository.top, [f"{commit.origin.tree}/{path}" for path in {*known, *wanted}])
    present = {path: (root / path).read_bytes() for path in {*known, *wanted} if (root / path).is_file()}
    changed = sorted(path for path, data in wanted.items() if present.get(path) != data)
    ours = {p for p, data in present.items() if _is_known(data, p, known, repository.object_format)}
    edited = sorted(path for path in changed if path in present and path not in ours)
    stale = sorted(ours - wanted.keys())
    staged = _staged_edits(repository, commit.origin.tree, {*wanted, *stale}, known) if as_commit else {}
    if (edited or staged) and not force:
        raise EditsInTheWay(root, edited, staged)
    kept = {path: present[path] for path in edited} | {f"{p}.staged": data for p, data in staged.items()}
    kept_in = _keep(repository, commit, kept) if kept else None
    try:
        _clear(root, stale)
        for path in changed:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            replace_file(root / path, wanted[path])
    except OSError as error:
        raise EnvironmentFault("cannot write stitched/", where=str(root), why=str(error)) from error
    written, removed, overwritten, all_of_it = (
        tuple(f"{commit.origin.tree}/{path}" for path in paths)
        for paths in (changed, stale, sorted({*edited, *staged}), wanted)
    )
    sha = _commit_as_user(repository, commit, all_of_it, removed) if as_commit else ""
    return Applied(commit, written, removed, overwritten, kept_in, sha)


def _require_no_merge(repository: Repository) -> None:
    """git commits no single paths while it merges, and would take a commit for the end of a revert."""
    for what in ("merge", "cherry-pick", "revert"):
        head = f"{what.upper().replace('-', '_')}_HEAD"
        if repository.ask("rev-parse", "--verify", "--quiet", head).status == 0:
            raise UsageError(
                f"a {what} is not finished",
                where=str(repository.top),
                advice="finish it first, `git status` says how; or apply without --commit",
            )
    unmerged = _records(repository.git("ls-files", "--unmerged", "-z"))
    if unmerged:
        raise UsageError(
            "there are conflicts to resolve",
            where=str(repository.top),
            why=", ".join(sorted({record.partition("\t")[2] for record in unmerged})[:5]),
            advice="resolve and add them first, or apply without --commit",
        )


def _require_way(top: Path, paths: Collection[str]) -> None:
    """A link would carry our writes somewhere else; a file stands where a folder must be, or the reverse."""
    for path in paths:
        for part in [str(parent) for parent in reversed(Path(path).parents)][1:]:
            if (top / part).is_symlink() or ((top / part).exists() and not (top / part).is_dir()):
                raise UsageError(
                    "this is in the way of a folder", where=f"{top / part}", advice="move it away"
                )
        if (top / path).is_symlink() or ((top / path).exists() and not (top / path).is_file()):
            raise UsageError("this is in the way of a file", where=f"{top / path}", advice="move it away")


def _is_known(data: bytes, path: str, known: Known, object_format: str) -> bool:
    """Also with the CRLF line ends that core.autocrlf writes."""
    variants = {data, data.replace(b"\r\n", b"\n")}
    return any(blob_name(variant, object_format) in known.get(path, ()) for variant in variants)


def blob_name(data: bytes, object_format: str) -> str:
    """The object name that git gives to a file's content."""
    return hashlib.new(object_format, b"blob %d\0" % len(data) + data).hexdigest()


def _staged_edits(
    repository: Repository, tree: str, paths: Collection[str], known: Known
) -> dict[str, bytes]:
    """What of `paths` (below `tree`) only the index has: staged by the user -> content."""
    index = _staged(repository, [f"{tree}/{path}" for path in paths]) if paths else {}
    names = {at.removeprefix(f"{tree}/"): name for at, name in index.items() if name.strip("0")}
    foreign = {path: name for path, name in names.items() if name not in known.get(path, ())}
    there = [path for path in foreign if (repository.top / tree / path).is_file()]
    if there:  # the same file, with the line ends and filters of `git add`
        listing = "".join(f"{tree}/{path}\n" for path in there).encode()
        added = repository.as_user("hash-object", "--stdin-paths", stdin=listing).text.split("\n")
        same = [path for path, name in zip(there, added, strict=False) if foreign[path] == name]
        foreign = {path: name for path, name in foreign.items() if path not in same}
    return contents(repository, foreign)


def _keep(repository: Repository, commit: Commit, edits: Mapping[str, bytes]) -> Path:
    """Copy the user's edits aside, below `.stitch/`, before they are overwritten."""
    project = repository.top / commit.origin.folder
    (parent := state_folder(project) / "overwritten").mkdir(exist_ok=True)
    kept_in = Path(tempfile.mkdtemp(dir=parent, prefix=f"{commit.origin.session}-"))
    write_all(kept_in, edits)
    return kept_in


def _clear(root: Path, paths: Collection[str]) -> None:
    for path in paths:
        (root / path).unlink()
    for folder in sorted(
        {p for path in paths for p in (root / path).parents if root in p.parents}, reverse=True
    ):
        if not any(folder.iterdir()):
            folder.rmdir()


def _commit_as_user(
    repository: Repository, commit: Commit, present: Collection[str], removed: Collection[str]
) -> str:
    """One ordinary commit of just these paths; what else is staged stays staged."""
    tracked = _records(repository.git("ls-files", "-z", "--", *removed)) if removed else []
    paths = ["--", *(f":(literal){path}" for path in (*present, *tracked))]
    added = repository.as_user("add", "--force", "--all", *paths)
    if added.status:
        raise _not_committed(repository, commit, "add", added)
    if not _staged(repository, (*present, *tracked)):
        return ""
    text = f"Apply stitch: {commit.iteration.subject}\n\nStitch-Applied: {commit.sha}\n"
    done = repository.as_user("commit", "--only", "-F", "-", *paths, stdin=text.encode())
    if done.status:
        raise _not_committed(repository, commit, "commit", done)
    return repository.text("rev-parse", "HEAD")


def _not_committed(repository: Repository, commit: Commit, command: str, answer: Answer) -> GitFailed:
    """git's own failure, with what it left and how to go on."""
    error, tree = failed(repository.top, command, answer), commit.origin.tree
    left = f"{tree} is written{' and staged' if command == 'commit' else ''}, not committed"
    on = f"mend this and apply again; or unstage it: git reset -- {shlex.quote(tree)}"
    return GitFailed(
        error.what, where=error.where, why=error.why, advice="; ".join(filter(None, (error.advice, left, on)))
    )


def _staged(repository: Repository, paths: Collection[str]) -> dict[str, str]:
    """Those of `paths` that the index has otherwise than HEAD -> object name there; zeros: none."""
    unborn = repository.ask("rev-parse", "--verify", "--quiet", "HEAD").status
    head = repository.text("hash-object", "-t", "tree", "--stdin") if unborn else "HEAD"
    raw = repository.git(
        "diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", head, "--", *paths
    )
    records = _records(raw)
    return {path: kind.split(" ")[3] for kind, path in zip(records[::2], records[1::2], strict=True)}


def export(repository: Repository, commit: Commit, target: Path, known: Known) -> Path:
    """Write an iteration's bundle to the folder `target`: all of it or nothing.

    An empty folder, or one that holds nothing but files of stitch's, is replaced.

    Raises:
        UsageError: the folder holds something else, or cannot be written.
    """
    target = target.absolute()
    _require_replaceable(target, known, repository.object_format)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".stitch-export-") as scratch:
            write_all(Path(scratch) / "new", files(repository, commit))
            if target.exists():
                os.rename(target, Path(scratch) / "old")
            os.rename(Path(scratch) / "new", target)
    except OSError as error:
        raise UsageError("cannot write the export", where=str(target), why=str(error)) from error
    return target


def _require_replaceable(target: Path, known: Known, object_format: str) -> None:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise UsageError("not a folder", where=str(target), advice="export to another place")
    leaves = (place for place in target.rglob("*") if place.is_symlink() or not place.is_dir())
    foreign = next((place for place in leaves if not _ours(place, target, known, object_format)), None)
    if foreign:
        raise UsageError(
            f"the folder holds something else: {foreign.relative_to(target)}",
            where=str(target),
            advice="export to a new folder",
        )


def _ours(place: Path, root: Path, known: Known, object_format: str) -> bool:
    path = place.relative_to(root).as_posix()
    return (
        place.is_file()
        and not place.is_symlink()
        and _is_known(place.read_bytes(), path, known, object_format)
    )


def write_all(root: Path, contents: Mapping[str, bytes]) -> None:
    """Write files below a folder that nobody else uses yet."""
    root.mkdir(parents=True, exist_ok=True)
    for path, data in contents.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
