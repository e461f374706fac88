"""Read sessions and iterations from git alone: local branches, or a clone's remote-tracking ones."""

import re
from dataclasses import dataclass
from datetime import datetime

from stitch_tui.tools.errors import EnvironmentFault, UsageError
from stitch_tui.tools.history.iteration import Iteration
from stitch_tui.tools.history.repository import Repository
from stitch_tui.tools.history.trailers import Origin, from_trailers, origin_from, parse, safe_path

_FORMAT = "%H%x00%P%x00%an <%ae>%x00%cI%x00%(trailers:only=true,unfold=true)"


@dataclass(frozen=True)
class Commit:
    """One commit of a session."""

    sha: str
    parent: str
    author: str
    time: datetime
    origin: Origin
    entry: Iteration | None
    """None: the commit that opens the session."""

    @property
    def iteration(self) -> Iteration:
        """The iteration of a commit that `log` or `find` returned."""
        if self.entry is None:
            raise ValueError(f"{self.sha} opens a session")
        return self.entry


@dataclass(frozen=True)
class Session:
    """A session's branch."""

    name: str
    ref: str
    """Full name: ``refs/heads/stitch/...``, or ``refs/remotes/origin/stitch/...`` in a clone."""
    tip: str
    origin: Origin
    updated: datetime

    @property
    def local(self) -> bool:
        return self.ref.startswith("refs/heads/")


def commits(repository: Repository, *arguments: str) -> list[Commit]:
    """The commits of sessions among those that ``git log ARGUMENTS`` walks, newest first.

    Others (a person's own, or with trailers that contradict themselves) are passed over.
    """
    out = repository.git("log", "-z", f"--format={_FORMAT}", *arguments, "--").decode("utf-8", "replace")
    fields = out.split("\0")
    rows = zip(*[iter(fields[: len(fields) - len(fields) % 5])] * 5, strict=True)
    return [commit for row in rows if (commit := _commit(row))]


def _commit(row: tuple[str, ...]) -> Commit | None:
    sha, parents, author, time, text = row
    try:
        found = parse(text)
        origin = origin_from(found)
        entry = from_trailers(found) if "Stitch-Iteration" in found else None
    except ValueError:
        return None
    return Commit(sha, parents.partition(" ")[0], author, datetime.fromisoformat(time), origin, entry)


def sessions(repository: Repository, prefix: str) -> list[Session]:
    """All sessions, latest first; a local branch hides remote-tracking ones of the same name."""
    listed = repository.text(
        "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/remotes"
    )
    shape = re.compile(rf"refs/(?:heads|remotes/.+)/{re.escape(prefix)}(?:-sessions)?/([^/]+)")
    refs: dict[str, tuple[str, str]] = {}
    for line in listed.split("\n"):
        ref, _, tip = line.partition(" ")
        if match := shape.fullmatch(ref):
            refs.setdefault(match[1], (ref, tip))
    tips = [tip for _, tip in refs.values()]
    read = {commit.sha: commit for commit in commits(repository, "--no-walk", *tips)} if tips else {}
    found = [_session(repository, name, *at, read.get(at[1])) for name, at in refs.items()]
    return sorted(filter(None, found), key=lambda session: (session.updated, session.name), reverse=True)


def _session(repository: Repository, name: str, ref: str, tip: str, latest: Commit | None) -> Session | None:
    """None: a branch below the prefix that no session wrote."""
    if latest is None:  # somebody else's commit lies on top
        search = ("--first-parent", "--fixed-strings", f"--grep=Stitch-Session: {name}")
        latest = next(iter(commits(repository, "-1", *search, tip)), None)
    if latest is None or latest.origin.session != name:
        return None
    return Session(name, ref, tip, latest.origin, latest.time)


def log(repository: Repository, session: Session) -> list[Commit]:
    """The session's commits, oldest first, beginning with the one that opens it."""
    # --ignore-missing: a shallow clone may lack the base
    base = ("--not", session.origin.base) if session.origin.base else ()
    walked = commits(repository, "--first-parent", "--ignore-missing", session.tip, *base)
    return [commit for commit in reversed(walked) if commit.origin.session == session.name]


def stitched_tree(repository: Repository, sha: str, path: str) -> str:
    """The tree object at `path` (of `stitched/`) in a commit; the empty tree when it has none."""
    row = repository.git("ls-tree", "-d", "-z", sha, "--", path) if sha else b""
    name = row.split(b"\t")[0].split(b" ")[-1].decode()
    return name or repository.text("hash-object", "-t", "tree", "--stdin")


def files(repository: Repository, commit: Commit) -> dict[str, bytes]:
    """The regular files of `stitched/` in a commit: path below it -> bytes."""
    return contents(repository, blobs(repository, commit))


def blobs(repository: Repository, commit: Commit) -> dict[str, str]:
    """The regular files of `stitched/` in a commit: path below it -> object name.

    Raises:
        UsageError: a path leaves the folder: only a forged tree has one.
    """
    tree = stitched_tree(repository, commit.sha, commit.origin.tree)
    found = {}
    for line in (
        repository.git("ls-tree", "-r", "-z", tree).decode("utf-8", "surrogateescape").split("\0")[:-1]
    ):
        kind, _, path = line.partition("\t")
        mode, _, name = kind.split(" ")
        if not safe_path(path):
            raise UsageError(f"a path that leaves stitched/: {path!r}", where=f"commit {commit.sha[:12]}")
        if mode.startswith("100"):
            found[path] = name
    return found


def contents(repository: Repository, names: dict[str, str]) -> dict[str, bytes]:
    """The bytes of blobs, key by key, in one git process.

    Raises:
        EnvironmentFault: the repository lacks one of them.
    """
    asked = "".join(f"{name}\n" for name in names.values()).encode()
    out, found = repository.git("cat-file", "--batch", stdin=asked), {}
    for key, name in names.items():
        header, _, rest = out.partition(b"\n")
        if not header.startswith(f"{name} blob ".encode()):
            raise EnvironmentFault(f"a file's content is missing: {key}", why=header.decode(errors="replace"))
        size = int(header.rpartition(b" ")[2])
        found[key], out = rest[:size], rest[size + 1 :]
    return found


def diff(repository: Repository, before: str, after: str) -> str:
    """Unified diff of two trees of `stitched/`; no external diff or text conversion runs."""
    return repository.git(
        "diff-tree", "-p", "-r", "--no-ext-diff", "--no-textconv", "-M", before, after
    ).decode("utf-8", "replace")
