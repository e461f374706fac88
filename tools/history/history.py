"""A project's history: sessions and their iterations, written to and read from git."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Self

from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.history import apply, commits, read
from stitch_tui.tools.history.best import best_of
from stitch_tui.tools.history.commits import BranchMoved, Identity, Started
from stitch_tui.tools.history.iteration import Iteration, Kind, Outcome
from stitch_tui.tools.history.read import Commit, Session
from stitch_tui.tools.history.repository import Repository
from stitch_tui.tools.history.trailers import Origin, message, origin_trailers, to_trailers

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


class History:
    """Sessions of the repository that a project lies in.

    Sessions belong to the project's folder: a commit holds its bundle at ``<folder>/stitched/``, which
    in most projects is ``stitched/`` at the top level.  Methods take a session's name; None is the
    latest one of this folder, else of the repository.
    """

    def __init__(self, repository: Repository, prefix: str, author: str) -> None:
        self.repository, self.prefix, self._author = repository, prefix, author
        self._branches: dict[str, tuple[str, Origin]] = {}

    @classmethod
    def open(cls, path: Path, *, prefix: str = "stitch", author: str = "") -> Self:
        """The history of the project at `path`; see `Repository.find` for the errors."""
        return cls(Repository.find(path), prefix, author)

    def _who(self) -> Identity:
        return commits.identity(self.repository, self._author)

    # writing

    def start_session(self, name: str, base: str = "HEAD") -> Started:
        """Open a session's branch on the revision `base`; see `commits.start` for the errors."""
        started = commits.start(self.repository, self.prefix, name, base, self._who())
        self._branches[name] = (f"refs/heads/{started.branch}", started.origin)
        return started

    def commit(self, session: str, files: Mapping[str, bytes], iteration: Iteration, expected: str) -> str:
        """Commit an iteration with `files` (paths below `stitched/`) as the whole of `stitched/` -> its name.

        Args:
            expected: the commit that the session's branch points at, as far as the caller knows.

        Raises:
            BranchMoved: it does not: another stitch wrote.
            UsageError: no such session, one of another name in `iteration`, or an unsound path.
            EnvironmentFault: the branch is checked out, or git cannot write.
        """
        if iteration.session != session:
            raise UsageError(f"an iteration of {iteration.session} in session {session}")
        ref, origin, old = self._branch(session, expected)
        tree = commits.store_tree(self.repository, origin, files)
        text = message(iteration.subject, to_trailers(iteration) + origin_trailers(origin))
        who = self._who()
        sha = commits.commit_tree(self.repository, tree, expected, text, who)
        commits.advance(self.repository, ref, sha, old, f"stitch: iteration {iteration.iteration}", who)
        self._branches[session] = (ref, origin)
        return sha

    def _branch(self, name: str, expected: str) -> tuple[str, Origin, str]:
        """The session's local branch, its origin, and what the branch must point at."""
        if name in self._branches:
            return (*self._branches[name], expected)
        session = self.session(name)
        if session.local:
            return session.ref, session.origin, expected
        if expected != session.tip:
            raise BranchMoved(session.ref, expected, session.tip)
        return f"refs/heads/{'/'.join(session.ref.split('/')[-2:])}", session.origin, ""

    def restore(self, n: Number, session: str | None = None, *, decision: str = "") -> Commit:
        """Roll forward: a new commit with the files of iteration `n` of the session."""
        chosen, target = self.session(session), self.find(n, session)
        if target.origin.session != chosen.name:
            raise UsageError(f"{n} belongs to session {target.origin.session}", where=chosen.name)
        return self._again(
            chosen, Kind.RESTORE, target, f"restore iteration {target.iteration.iteration}", decision
        )

    def undo(self, session: str | None = None, *, decision: str = "") -> Commit:
        """Roll forward to the files before the last iteration; again goes back one more."""
        chosen = self.session(session)
        walked = read.log(self.repository, chosen)
        at = _stands_at(walked, len(walked) - 1)
        if at == 0:
            raise UsageError("nothing to undo", where=chosen.name, why="the session is at its start")
        target = walked[_stands_at(walked, at - 1)]
        return self._again(chosen, Kind.RESTORE, target, f"undo iteration {_number(walked[at])}", decision)

    def seal(self, session: str | None = None) -> Commit | None:
        """See that the branch ends with the best iteration's files -> its last commit, or None without any.

        A new commit only where the tip holds something else; nothing is done while nothing is correct.
        """
        chosen = self.session(session)
        walked = read.log(self.repository, chosen)
        best = best_of(walked)
        if best is None or self._tree(chosen.tip, chosen.origin) == self._tree(best.sha, best.origin):
            return walked[-1] if walked else None
        return self._again(chosen, Kind.SEAL, best, f"ends with iteration {_number(best)}", "")

    def _again(self, session: Session, kind: Kind, target: Commit, title: str, decision: str) -> Commit:
        entries = [c.iteration.iteration for c in read.log(self.repository, session) if c.entry]
        old = target.entry.model_dump() if target.entry else {"outcome": Outcome.KEPT}
        new = {
            "session": session.name,
            "iteration": max(entries, default=0) + 1,
            "kind": kind,
            "title": title,
            "decision": decision,
            "best": kind is Kind.SEAL,
            "restores": target.entry.iteration if target.entry else None,
        }
        entry = Iteration.model_validate(old | new)
        files = read.files(self.repository, target)
        return read.commits(self.repository, "-1", self.commit(session.name, files, entry, session.tip))[0]

    def delete(self, session: str) -> str:
        """Remove a session's local branch -> the commit it pointed at, from which git can bring it back."""
        chosen = self.session(session)
        if not chosen.local:
            raise UsageError("not a branch of this repository", where=chosen.ref)
        commits.remove(self.repository, chosen.ref, chosen.tip)
        self._branches.pop(session, None)
        return chosen.tip

    # reading

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
            advice=f"there is {', '.join(near)}" if near else "start one: stitch",
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
        found = {str(_number(c)): c for c in entries}
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

    # to the user

    def apply(
        self, n: Number = "best", session: str | None = None, *, commit: bool = False, force: bool = False
    ) -> apply.Applied:
        """Bring an iteration's `stitched/` into the working tree; see `apply.into_working_tree`."""
        target = self.find(n, session)
        known = apply.known_versions(self.repository, self.sessions(), target.origin.tree)
        return apply.into_working_tree(self.repository, target, known, as_commit=commit, force=force)

    def export(self, n: Number, target: Path, session: str | None = None) -> Path:
        """Write an iteration's bundle to a folder; see `apply.export`."""
        chosen = self.find(n, session)
        known = apply.known_versions(self.repository, self.sessions(), chosen.origin.tree)
        return apply.export(self.repository, chosen, target, known)


def _number(commit: Commit) -> int | None:
    return commit.entry.iteration if commit.entry else None


def _stands_at(walked: list[Commit], index: int) -> int:
    """Follow restores and seals to the index of the commit whose files they hold; 0 is the start."""
    entry = walked[index].entry
    while entry and entry.again:
        wanted = entry.restores
        index = next((i for i, c in enumerate(walked[:index]) if c.entry and _number(c) == wanted), 0)
        entry = walked[index].entry
    return index
