"""What a project's history tells: its sessions, their iterations, the best; reading only, from git alone."""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Self

from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.history import read
from stitch_tui.tools.history.best import best_of
from stitch_tui.tools.history.read import Commit, Session
from stitch_tui.tools.history.repository import Repository
from stitch_tui.tools.history.trailers import Origin

Number = int | str
"""An iteration: its number in the session, ``best``, ``last``, or the beginning of a commit's name."""


@dataclass(frozen=True)
class Shown:
    """One iteration in full."""

    commit: Commit
    message: str
    files: tuple[str, ...]
    """Paths below `stitched/`."""
    diff: str
    """Against the commit before it."""


class Archive:
    """Sessions of the repository that a project lies in.

    Sessions belong to the project's folder: a commit holds its bundle at ``<folder>/stitched/``, which
    in most projects is ``stitched/`` at the top level.  Methods take a session's name; None is the
    latest one of this folder, else of the repository.
    """

    def __init__(self, repository: Repository, prefix: str, author: str) -> None:
        self.repository, self.prefix, self._author = repository, prefix, author

    @classmethod
    def open(cls, path: Path, *, prefix: str = "stitch", author: str = "") -> Self:
        """The history of the project at `path`; see `Repository.find` for the errors.

        Args:
            prefix: sessions are the branches ``PREFIX/SESSION``.
            author: ``Name <mail>`` of the commits; empty: the repository's identity, else stitch's own.
        """
        return cls(Repository.find(path), prefix, author)

    def sessions(self) -> list[Session]:
        """All sessions, latest first: local branches, and a clone's remote-tracking ones."""
        return read.sessions(self.repository, self.prefix)

    def session(self, name: str | None = None) -> Session:
        """The session of this name, or the latest.

        Raises:
            UsageError: there is none; the nearest names are given.
        """
        every = self.sessions()
        here = [s for s in every if s.origin.folder == self.repository.folder] or every
        chosen = next((s for s in (here if name is None else every) if name in (None, s.name)), None)
        if chosen:
            return chosen
        near = get_close_matches(name or "", [s.name for s in every], cutoff=0.3) or [
            s.name for s in every[:3]
        ]
        raise UsageError(
            f"no session {name}" if name else "no session yet",
            where=str(self.repository.top),
            advice=f"there is {', '.join(near)}" if near else "start one: stitch --auto",
        )

    def tip(self, session: str) -> Commit | None:
        """The session's last commit; None when somebody else's lies there."""
        return next(iter(read.commits(self.repository, "-1", self.session(session).tip)), None)

    def log(self, session: str | None = None) -> list[Commit]:
        """The session's iterations, oldest first."""
        return [c for c in read.log(self.repository, self.session(session)) if c.entry]

    def best(self, session: str | None = None) -> Commit | None:
        """The best iteration by the rule of `best_of`; None when none is correct."""
        return best_of(self.log(session))

    def find(self, n: Number, session: str | None = None) -> Commit:
        """The commit of iteration `n`.

        Raises:
            UsageError: there is none; those that are there are named.
        """
        chosen = self.session(session)
        entries = [c for c in read.log(self.repository, chosen) if c.entry]
        found = {str(number_of(c)): c for c in entries}
        if entries:
            found["last"] = entries[-1]
        if best := best_of(entries):
            found["best"] = best
        commit = found.get(str(n)) or self._by_name(str(n))
        if commit:
            return commit
        there = f"it has {', '.join(list(found)[:20])}" if found else "it has none yet"
        raise UsageError(f"no iteration {n}", where=f"session {chosen.name}", advice=there)

    def _by_name(self, sha: str) -> Commit | None:
        if len(sha) < 4 or not set(sha) <= set("0123456789abcdef"):
            return None
        if self.repository.ask("rev-parse", "--verify", "--quiet", f"{sha}^{{commit}}").status:
            return None
        return next((c for c in read.commits(self.repository, "-1", sha) if c.entry), None)

    def files(self, n: Number, session: str | None = None) -> dict[str, bytes]:
        """The bundle of an iteration: path below `stitched/` -> bytes."""
        return read.files(self.repository, self.find(n, session))

    def diff(self, a: Number, b: Number | None = None, session: str | None = None) -> str:
        """Unified diff of `stitched/` from iteration `a` to `b`; without `b`, what `a` changed."""
        first = self.find(a, session)
        if b is None:
            return self._change(first)
        second = self.find(b, session)
        return read.diff(
            self.repository, self._tree(first.sha, first.origin), self._tree(second.sha, second.origin)
        )

    def _change(self, commit: Commit) -> str:
        before, after = self._tree(commit.parent, commit.origin), self._tree(commit.sha, commit.origin)
        return read.diff(self.repository, before, after)

    def _tree(self, sha: str, origin: Origin) -> str:
        return read.stitched_tree(self.repository, sha, origin.tree)

    def show(self, n: Number, session: str | None = None) -> Shown:
        """An iteration with its message, file names and diff."""
        commit = self.find(n, session)
        text = self.repository.text("log", "-1", "--format=%B", commit.sha)
        return Shown(commit, text, tuple(read.blobs(self.repository, commit)), self._change(commit))


def number_of(commit: Commit) -> int | None:
    """The iteration's number; None for the commit that opens a session."""
    return commit.entry.iteration if commit.entry else None
