"""Write a session's commits with git plumbing: the user's HEAD, index, files and hooks are not touched.

A commit's tree is the tree of the session's base with `stitched/` replaced, built in a temporary index.
The branch moves by compare-and-swap, so two writers notice each other.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from stitch_tui.tools import git_names, scratch
from stitch_tui.tools.errors import EnvironmentFault, StitchError, UsageError
from stitch_tui.tools.history.iteration import SessionName
from stitch_tui.tools.history.repository import Repository, failed
from stitch_tui.tools.history.trailers import Origin, message, origin_trailers, safe_path

FALLBACK_IDENTITY = ("stitch", "stitch@localhost")

Identity = dict[str, str]
"""GIT_AUTHOR_* and GIT_COMMITTER_* for one commit."""


class BranchMoved(StitchError):
    """Another writer moved the session's branch; `theirs` is the commit it points at now, or empty."""

    def __init__(self, ref: str, expected: str, theirs: str) -> None:
        super().__init__(
            "another stitch wrote to this session",
            where=ref,
            why=f"expected {expected[:12] or 'no branch'}, found {theirs[:12] or 'no branch'}",
            advice="stop the other one, then resume",
        )
        self.theirs = theirs


@dataclass(frozen=True)
class Started:
    """A new session."""

    origin: Origin
    branch: str
    """``stitch/20261129-1402-lenet``."""
    sha: str
    """The commit that opens the branch: the base's tree, no iteration yet."""
    notice: str = ""
    """What a person should be told, such as another branch prefix."""


def identity(repository: Repository, author: str = "") -> Identity:
    """Who commits: `author` (``Name <mail>``), else the repository's identity, else stitch's own.

    Raises:
        UsageError: `author` is not of that form.
    """
    who = [_configured(repository, role) for role in ("AUTHOR", "COMMITTER")]
    if author:
        try:
            who[0] = git_names.author(author)
        except ValueError as error:
            raise UsageError(f"not an author: {author!r}", where="[git] author", why=str(error)) from None
    pairs = zip(("AUTHOR", "COMMITTER"), who, strict=True)
    return {
        f"GIT_{role}_{part}": v for role, w in pairs for part, v in zip(("NAME", "EMAIL"), w, strict=True)
    }


def person(repository: Repository) -> str:
    """Name of the repository's user; empty when git does not know it."""
    known = _configured(repository, "AUTHOR")
    return "" if known == FALLBACK_IDENTITY else known[0]


def _configured(repository: Repository, role: str) -> tuple[str, str]:
    # useConfigOnly: without it git invents root@host, which nobody configured
    answer = repository.ask("-c", "user.useConfigOnly=true", "var", f"GIT_{role}_IDENT")
    match = re.fullmatch(r"(.+) <(.+)> \d+ [+-]\d+", answer.text) if not answer.status else None
    return (match[1], match[2]) if match else FALLBACK_IDENTITY


def prepare(repository: Repository, prefix: str, session: str, base: str, who: Identity) -> Started:
    """The first commit of a new session on `base`, a revision; an unborn HEAD gives a root commit.

    There is no branch until `open_branch`: the caller may write down first that there will be one.

    Raises:
        UsageError: a name that no branch can have, or no such base.
    """
    _require_session_name(session)
    prefix, notice = free_prefix(repository, prefix)
    origin = Origin(session, _resolve(repository, base), repository.folder)
    tree = f"{origin.base}^{{tree}}" if origin.base else ""
    tree = repository.text("rev-parse", "--verify", tree) if tree else repository.text("mktree")
    text = message(f"{session}: session started", [("Stitch-Session", session), *origin_trailers(origin)])
    sha = commit_tree(repository, tree, origin.base, text, who)
    return Started(origin, f"{prefix}/{session}", sha, notice)


def open_branch(repository: Repository, branch: str, sha: str, who: Identity) -> None:
    """Create a session's branch at its first commit.

    Raises:
        BranchMoved: there is a session of this name.
    """
    advance(repository, f"refs/heads/{branch}", sha, "", "stitch: session started", who)


def _require_session_name(session: str) -> None:
    try:
        TypeAdapter(SessionName).validate_python(session)
    except ValidationError:
        raise UsageError(
            f"not a session name: {session!r}", advice="use letters, digits, '-', '_' and single dots"
        ) from None
    if session.endswith(".lock"):
        raise UsageError(f"not a session name: {session!r}", why="git keeps names in .lock for itself")


def free_prefix(repository: Repository, prefix: str) -> tuple[str, str]:
    """The branch prefix to use, and what to say of it.

    A branch named like the prefix makes git refuse every branch below it: then another is taken.

    Raises:
        EnvironmentFault: that one is in use as well.
    """
    for candidate in (prefix, f"{prefix}-sessions"):
        if not tip(repository, f"refs/heads/{candidate}"):
            notice = f"a branch named '{prefix}' exists: sessions go to '{candidate}/'"
            return candidate, "" if candidate == prefix else notice
    raise EnvironmentFault(
        f"branches named '{prefix}' and '{prefix}-sessions' are in the way",
        where=str(repository.top),
        advice="set another [git] branch_prefix",
    )


def _resolve(repository: Repository, base: str) -> str:
    answer = repository.ask("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}")
    if answer.status == 0 and not base.startswith("-"):
        return answer.text
    if base == "HEAD":
        return ""
    raise UsageError(f"no such commit: {base}", where=str(repository.top))


def tip(repository: Repository, ref: str) -> str:
    """The commit that the full ref name points at; empty when there is no such ref."""
    answer = repository.ask("rev-parse", "--verify", "--quiet", ref)
    return answer.text if answer.status == 0 else ""


def store_tree(repository: Repository, origin: Origin, files: Mapping[str, bytes]) -> str:
    """The tree of the session's base with `stitched/` replaced by `files` (paths below it), byte for byte.

    Raises:
        UsageError: a path leaves `stitched/`, or is a file and a folder at once.
    """
    _require_sound(files)
    with scratch.folder("stitch-index-") as folder:
        env = {"GIT_INDEX_FILE": f"{folder}/index"}
        repository.git("read-tree", origin.base or "--empty", env=env)
        stale = repository.git("ls-files", "-z", "--", origin.tree, env=env).split(b"\0")[:-1]
        blobs = _store_blobs(repository, folder, files)
        nothing = "0" * (64 if repository.object_format == "sha256" else 40)
        lines = [f"0 {nothing}\t".encode() + path for path in stale]
        lines += [f"100644 {blob}\t{origin.tree}/{path}".encode() for path, blob in blobs.items()]
        repository.git(
            "update-index", "-z", "--index-info", stdin=b"".join(line + b"\0" for line in lines), env=env
        )
        # --missing-ok: the base's own blobs may be absent from a partial clone
        return repository.text("write-tree", "--missing-ok", env=env)


def _require_sound(files: Mapping[str, bytes]) -> None:
    for path in files:
        if not safe_path(path):
            raise UsageError(f"not a path inside stitched/: {path!r}")
        parents = {str(parent) for parent in Path(path).parents}
        if clash := parents & files.keys():
            raise UsageError(f"a file and a folder at once: {clash.pop()!r}", where="stitched/")


def _store_blobs(repository: Repository, folder: Path, files: Mapping[str, bytes]) -> dict[str, str]:
    """Write each file as a blob, all in one git process -> path to object name."""
    copies = [folder / str(number) for number in range(len(files))]
    for copy, data in zip(copies, files.values(), strict=True):
        copy.write_bytes(data)
    listing = "".join(f"{copy}\n" for copy in copies).encode()
    names = repository.text("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=listing).split()
    return dict(zip(files, names, strict=True))


def commit_tree(repository: Repository, tree: str, parent: str, text: str, who: Identity) -> str:
    """Store a commit object, unsigned; no branch moves."""
    parents = ("-p", parent) if parent else ()
    return repository.text(
        "commit-tree", "--no-gpg-sign", *parents, "-F", "-", tree, stdin=text.encode(), env=who
    )


def advance(repository: Repository, ref: str, new: str, old: str, reason: str, who: Identity) -> None:
    """Move `ref` from `old` to `new`, or create it when `old` is empty.

    Raises:
        BranchMoved: it does not point at `old`.
        EnvironmentFault: it is checked out in a working tree, or git cannot write.
    """
    _require_not_checked_out(repository, ref)
    answer = repository.ask("update-ref", "-m", reason, ref, new, old, env=who)
    if answer.status == 0:
        return
    if (theirs := tip(repository, ref)) != old:
        raise BranchMoved(ref, old, theirs)
    raise failed(repository.top, "update-ref", answer)


def checked_out_at(repository: Repository, ref: str) -> str:
    """The working tree that has the branch checked out, or empty."""
    return repository.text("for-each-ref", "--format=%(worktreepath)", ref)


def _require_not_checked_out(repository: Repository, ref: str) -> None:
    """Moving a branch under someone's feet would make their working tree look edited."""
    if place := checked_out_at(repository, ref):
        raise EnvironmentFault(
            "the session's branch is checked out",
            where=place,
            why="stitch never moves your HEAD",
            advice=f"git -C '{place}' switch --detach",
        )


def remove(repository: Repository, ref: str, old: str) -> None:
    """Delete a branch that points at `old`.

    Raises:
        BranchMoved, EnvironmentFault: as `advance`.
    """
    _require_not_checked_out(repository, ref)
    answer = repository.ask("update-ref", "-d", ref, old)
    if answer.status == 0:
        return
    if (theirs := tip(repository, ref)) != old:
        raise BranchMoved(ref, old, theirs)
    raise failed(repository.top, "update-ref", answer)
