"""A project's history: every iteration is written as a commit, restored by a new one, brought to the user."""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.history import apply, commits, read
from stitch_tui.tools.history.archive import Archive, Number, number_of
from stitch_tui.tools.history.best import best_of
from stitch_tui.tools.history.commits import BranchMoved, Identity, Started
from stitch_tui.tools.history.iteration import Iteration
from stitch_tui.tools.history.read import Commit, Session
from stitch_tui.tools.history.repository import Repository
from stitch_tui.tools.history.trailers import Origin, message, origin_trailers, to_trailers
from stitch_tui.tools.iteration import Kind, Outcome


class Part(StrEnum):
    """What of an iteration is restored."""

    BOTH = "both"
    CODE = "code"
    PLAN = "plan"

    def taken(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """The files that belong to this part."""
        return {path: data for path, data in files.items() if self.holds(path)}

    def left(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """The other files."""
        return {path: data for path, data in files.items() if not self.holds(path)}

    def holds(self, path: str) -> bool:
        return self is Part.BOTH or (path == "plan.toml") is (self is Part.PLAN)


class History(Archive):
    """An `Archive` that is written to: by the engine, by restore and undo, and to the working tree."""

    def __init__(self, repository: Repository, prefix: str, author: str) -> None:
        super().__init__(repository, prefix, author)
        self._branches: dict[str, tuple[str, Origin]] = {}

    @cached_property
    def _who(self) -> Identity:
        return commits.identity(self.repository, self._author)

    @property
    def person(self) -> str:
        """Name of the repository's user; empty when git does not know it."""
        return commits.person(self.repository)

    def start_session(self, name: str, base: str = "HEAD") -> Started:
        """Open a session's branch on the revision `base`; see `commits` for the errors."""
        started = self.prepare_session(name, base)
        self.open_branch(started.branch, started.sha)
        return started

    def prepare_session(self, name: str, base: str = "HEAD") -> Started:
        """The first commit of a session whose branch is not open yet; see `commits.prepare`."""
        started = commits.prepare(self.repository, self.prefix, name, base, self._who)
        self._branches[name] = (f"refs/heads/{started.branch}", started.origin)
        return started

    def open_branch(self, branch: str, sha: str) -> None:
        """Create a prepared session's branch; see `commits.open_branch`."""
        commits.open_branch(self.repository, branch, sha, self._who)

    def commit(self, session: str, files: Mapping[str, bytes], iteration: Iteration, expected: str) -> str:
        """Commit an iteration with `files` (paths below `stitched/`) as the whole of `stitched/` -> its name.

        Args:
            expected: the commit that the session's branch points at, as far as the caller knows.
            iteration: a *human* one is committed as the repository's user, whatever `author` is.

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
        by_hand = iteration.kind is Kind.HUMAN
        who = commits.identity(self.repository) if by_hand else self._who
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
        prefix, _ = commits.free_prefix(self.repository, self.prefix)
        return f"refs/heads/{prefix}/{name}", session.origin, ""

    def restore(
        self, n: Number, session: str | None = None, *, part: Part = Part.BOTH, decision: str = ""
    ) -> Commit:
        """Roll forward: a new commit with the files of iteration `n` of the session.

        With a `part`, the rest stays as it is at the branch's tip; such a mixture is a *human* iteration
        without a verdict.
        """
        chosen, target = self.session(session), self.find(n, session)
        number = target.iteration.iteration
        if target.origin.session != chosen.name:
            raise UsageError(f"{n} belongs to session {target.origin.session}", where=chosen.name)
        if part is Part.BOTH:
            return self._again(chosen, Kind.RESTORE, target, f"restore iteration {number}", decision)
        last = read.log(self.repository, chosen)[-1]
        now = read.files(self.repository, replace(last, sha=chosen.tip))
        files = part.taken(read.files(self.repository, target)) | part.left(now)
        told = {"outcome": Outcome.KEPT, "title": f"restore the {part} of iteration {number}"}
        return self._next(chosen, files, {"kind": Kind.HUMAN, "decision": decision} | told)

    def undo(self, session: str | None = None, *, decision: str = "") -> Commit:
        """Roll forward to the files before the last iteration; again goes back one more."""
        chosen = self.session(session)
        walked = read.log(self.repository, chosen)
        at = _stands_at(walked, len(walked) - 1)
        if at == 0:
            raise UsageError("nothing to undo", where=chosen.name, why="the session is at its start")
        target = walked[_stands_at(walked, at - 1)]
        return self._again(chosen, Kind.RESTORE, target, f"undo iteration {number_of(walked[at])}", decision)

    def seal(self, session: str | None = None) -> Commit | None:
        """See that the branch ends with the best iteration's files -> its last commit.

        A new commit only where the tip holds something else; None, and nothing is done, while nothing is
        correct.
        """
        chosen = self.session(session)
        walked = read.log(self.repository, chosen)
        best = best_of(walked)
        if best is None:
            return None
        if self._tree(chosen.tip, chosen.origin) == self._tree(best.sha, best.origin):
            return walked[-1]
        return self._again(chosen, Kind.SEAL, best, f"ends with iteration {number_of(best)}", "")

    def _again(self, session: Session, kind: Kind, target: Commit, title: str, decision: str) -> Commit:
        """A commit with the files and the numbers of `target`."""
        numbers = target.entry.model_dump() if target.entry else {"outcome": Outcome.KEPT}
        told = {"kind": kind, "title": title, "decision": decision, "best": kind is Kind.SEAL}
        files = read.files(self.repository, target)
        return self._next(session, files, numbers | told | {"restores": number_of(target)})

    def _next(self, session: Session, files: Mapping[str, bytes], fields: Mapping[str, Any]) -> Commit:
        number = max((number_of(c) or 0 for c in read.log(self.repository, session)), default=0) + 1
        told = {**fields, "session": session.name, "iteration": number}
        sha = self.commit(session.name, files, Iteration.model_validate(told), session.tip)
        return read.commits(self.repository, "-1", sha)[0]

    def delete(self, session: str) -> str:
        """Remove a session's local branch -> the commit it pointed at, from which git can bring it back."""
        chosen = self.session(session)
        if not chosen.local:
            raise UsageError("not a branch of this repository", where=chosen.ref)
        commits.remove(self.repository, chosen.ref, chosen.tip)
        self._branches.pop(session, None)
        return chosen.tip

    def old(self, keep: int) -> list[Session]:
        """All local sessions but the latest `keep`, and but those that are checked out somewhere."""
        local = [session for session in self.sessions() if session.local][max(keep, 0) :]
        return [s for s in local if not commits.checked_out_at(self.repository, s.ref)]

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


def _stands_at(walked: list[Commit], index: int) -> int:
    """Follow restores and seals to the index of the commit whose files they hold; 0 is the start."""
    entry = walked[index].entry
    while entry and entry.again:
        wanted = entry.restores
        index = next((i for i, c in enumerate(walked[:index]) if c.entry and number_of(c) == wanted), 0)
        entry = walked[index].entry
    return index
