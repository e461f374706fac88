"""A session's files: the work folder that a human may edit, the bundle, and the commits."""

import errno
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from stitch_tui.agents import plan_file, plan_outline
from stitch_tui.agents.state import Candidate, Session, Subtask
from stitch_tui.agents.state import Iteration as Attempt
from stitch_tui.tools.atomic_write import replace_file, writing
from stitch_tui.tools.bundle import (
    Kernel,
    Layout,
    Program,
    ReferenceSource,
    coverage,
    host_text,
    render,
)
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.graph import Graph
from stitch_tui.tools.history import PROGRAM, Commit, History, Iteration, Started
from stitch_tui.tools.history.folders import work_folder
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.reference import ReferenceSummary
from stitch_tui.tools.regular_file import LARGEST_SOURCE_BYTES, read_regular
from stitch_tui.tools.verdict import Timing, Verdict


class Workspace:
    """Where the workflow puts what it made.

    Args:
        started: the session's branch in `history`.
        summary, layout: of the open reference.
        graph: the exported one with measured times.
    """

    def __init__(
        self,
        project: Path,
        history: History,
        started: Started,
        summary: ReferenceSummary,
        layout: Layout,
        graph: Graph,
    ) -> None:
        self._history, self._summary, self._layout, self._graph = history, summary, layout, graph
        self._session = started.origin.session
        self.folder = work_folder(project, self._session)
        self._written: dict[Path, bytes] = {}
        """What the engine put there last."""
        self._stitched: set[str] = set()
        """Host programs of stitch's own, as they could have been given to a person to edit."""
        self.tip = started.sha
        """The branch's last commit."""

    def write_candidate(self, subtask: Subtask, candidate: Candidate) -> None:
        """Put an attempt, which the journal knows already, where a human can see and edit it."""
        self._put(self.path_of(subtask), candidate.source.encode(), "cannot write a candidate")

    def edited(self, session: Session, subtask: Subtask) -> str:
        """A subtask's file as a person left it; empty when it is the engine's, or was judged already."""
        path = self.path_of(subtask)
        try:
            data = read_regular(path, LARGEST_SOURCE_BYTES)
        except OSError:
            return ""
        known = [*session.attempts_of(subtask.id), session.best_of(subtask)]
        sources = {
            attempt.candidate.source
            for attempt in known
            if attempt and attempt.candidate and (attempt.verdict or attempt.kind is not Kind.HUMAN)
        }
        text = data.decode(errors="replace")
        if data == self._written.get(path) or text in sources or not text.strip():
            return ""
        return "" if subtask.is_host and self._is_stitched(session, text) else text

    def _is_stitched(self, session: Session, text: str) -> bool:
        """Is it the host program that stitch itself writes, now or with earlier kernels?"""
        self._stitched.add(self.host_program(session, own=True).strip())
        return text.strip() in self._stitched

    def path_of(self, subtask: Subtask) -> Path:
        """Where a subtask's candidate lies for a human to edit."""
        return self.folder / subtask.file

    def read_plan(self) -> bytes | None:
        """The session's ``plan.toml`` as it lies there; None where there is none.

        Raises:
            UsageError: what lies there cannot be read.
        """
        try:
            return read_regular(self.folder / plan_file.NAME, LARGEST_SOURCE_BYTES)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINVAL):  # nothing, or a pipe in its place
                return None
            advice = "mend it, or remove it: it is written anew"
            raise UsageError("it is not read", why=error.strerror or "", advice=advice) from error

    def write_plan(self, session: Session) -> bytes:
        """Write the session's ``plan.toml`` as things stand, for a human to edit; its bytes."""
        data = self._plan(self._bundle(session), session)
        self._put(self.folder / plan_file.NAME, data, "cannot write the plan")
        return data

    def _plan(self, bundle: dict[str, bytes], session: Session) -> bytes:
        return plan_file.written(bundle[plan_file.NAME], plan_outline.outline(session))

    @property
    def person(self) -> str:
        """The name of the project's user; empty when git does not know it."""
        return self._history.person

    def _put(self, path: Path, data: bytes, what: str) -> None:
        with writing(path, what):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, data)
        self._written[path] = data

    def write_bundle(self, session: Session, only: Collection[str] | None = None) -> Path:
        """Write the stitched program of the best kernels and the best host program; its folder.

        The last iteration's candidate takes the place of its subtask's best.

        Args:
            only: these subtasks' kernels alone, under stitch's own host program, in a folder apart; None:
                all of them.
        """
        if only is None:
            files = self._bundle(session, session.iterations[-1])
            return self._write(self.folder, files | {plan_file.NAME: self._plan(files, session)})
        return self._write(self.folder / "part", self._bundle(_with_best_of(session, only)))

    def write_replaced(self, session: Session) -> Path:
        """Write the stitched program as it is without the last iteration, in a folder apart."""
        return self._write(self.folder / "replaced", self._bundle(session))

    def _write(self, folder: Path, files: Mapping[str, bytes]) -> Path:
        for name, data in files.items():
            self._put(folder / name, data, "cannot write the stitched program")
        return folder

    def host_program(self, session: Session, *, own: bool = False) -> str:
        """The text of the best host program; `own`: of the one that stitch itself writes."""
        return ("" if own else _host(session, None)) or host_text(self._program(session, None))

    def commit(self, session: Session, number: int) -> tuple[str, str]:
        """Commit an iteration; the commit's name and subject."""
        attempt = session.iteration(number)
        entry = self._entry(session, attempt)
        self.tip = self._history.commit(
            self._session, self._bundle(session, attempt), entry, expected=self.tip
        )
        return self.tip, entry.subject

    def restore(self, number: int, decision: str) -> Commit:
        """Commit the files of an earlier iteration anew."""
        restored = self._history.restore(number, self._session, decision=decision)
        self.tip = restored.sha
        return restored

    def seal(self) -> Commit | None:
        """See that the branch ends with the best iteration; its last commit, None when nothing is correct."""
        last = self._history.seal(self._session)
        if last is not None and last.entry is not None:
            self.tip = last.sha
            return last
        return None

    def commits_after(self, known: str) -> list[Commit]:
        """The session's commits after `known`, oldest first.

        Raises:
            UsageError: the branch does not go on from `known` with this session's commits alone.
        """
        found: list[Commit] = []
        for commit in self._history.log(self._session):
            if found or commit.parent == known:
                found.append(commit)
        parents = [known, *(commit.sha for commit in found)]
        if parents.pop() != self.tip or parents != [commit.parent for commit in found]:
            raise UsageError(
                "the session's branch is not as its journal left it",
                where=self.tip[:12],
                why=f"the last commit that the journal knows is {known[:12]}",
                advice="start a new session: stitch --auto",
            )
        return found

    def coverage(self, session: Session) -> float:
        """Share of the reference's time in kernels that were kept, 0-1."""
        kept = [s.region for s in session.kernels if s.best is not None]
        return coverage(self._graph, kept).share

    def _bundle(self, session: Session, attempt: Attempt | None = None) -> dict[str, bytes]:
        """The program of the best candidates, the attempt's in the place of its own subtask's."""
        return render(self._program(session, attempt))

    def _program(self, session: Session, attempt: Attempt | None) -> Program:
        whole = attempt is not None and _is_whole(session, attempt)
        return Program(
            graph=self._graph,
            kernels=tuple(self._kernel(session, subtask, attempt) for subtask in session.kernels),
            reference=ReferenceSource(
                text=self._summary.source,
                class_name=self._summary.class_name,
                mode=str(self._summary.flags["mode"]),
                origin=self._summary.path,
            ),
            **dict(self._layout),
            host=_host(session, attempt),
            verdict=attempt.verdict if attempt and whole else None,
            session=self._session,
        )

    def _kernel(self, session: Session, subtask: Subtask, attempt: Attempt | None) -> Kernel:
        chosen = _chosen(session, subtask, attempt)
        candidate = chosen.candidate if chosen else None
        return Kernel(
            id=subtask.id,
            title=subtask.title,
            region=subtask.region,
            source=candidate.source if candidate else "",
            state=str(subtask.state),
            strategy=candidate.strategy if candidate else "",
            verdict=chosen.verdict if chosen else None,
        )

    def _entry(self, session: Session, attempt: Attempt) -> Iteration:
        """What the commit says of itself."""
        subtask = session.subtask(attempt.subtask) if attempt.subtask else None
        verdict = attempt.verdict
        return Iteration(
            session=self._session,
            iteration=attempt.number,
            subtask=subtask.id if subtask and not subtask.is_host else PROGRAM,
            name=subtask.title if subtask else "",
            attempt=attempt.attempt,
            kind=attempt.kind,
            outcome=attempt.outcome or Outcome.ERROR,
            title=_title(attempt),
            decision="; ".join(session.undelivered),
            device=session.device,
            coverage=self.coverage(session),
            best=attempt.outcome is Outcome.KEPT,
            reference_sha256=self._summary.sha256,
            **(_judged(verdict) if verdict else {}),
        )


def _with_best_of(session: Session, only: Collection[str]) -> Session:
    """The session as if these subtasks alone had a best version."""
    if session.plan is None:
        return session
    subtasks = tuple(s if s.id in only else s.model_copy(update={"best": None}) for s in session.subtasks)
    return session.model_copy(update={"plan": session.plan.model_copy(update={"subtasks": subtasks})})


def _is_whole(session: Session, attempt: Attempt) -> bool:
    """Is it about the whole program: an integration, or another host program?"""
    return not attempt.subtask or (session.host is not None and attempt.subtask == session.host.id)


def _chosen(session: Session, subtask: Subtask, attempt: Attempt | None) -> Attempt | None:
    """The attempt whose candidate a subtask contributes: this one if it is the subtask's, else its best."""
    own = attempt is not None and attempt.subtask == subtask.id and attempt.candidate is not None
    return attempt if own else session.best_of(subtask)


def _host(session: Session, attempt: Attempt | None) -> str:
    """The host program, empty where it is stitch's own."""
    chosen = _chosen(session, session.host, attempt) if session.host else None
    return chosen.candidate.source if chosen and chosen.candidate else ""


def _title(attempt: Attempt) -> str:
    if attempt.candidate:
        return attempt.candidate.strategy
    return "" if attempt.subtask or attempt.verdict is None else "stitched"


def _judged(verdict: Verdict) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "verdict": verdict.category,
        "flags": verdict.flags,
        "error": verdict.error,
        "error_limit": verdict.error_limit,
    }
    return fields | (_timed(verdict.timing) if verdict.timing else {})


def _timed(timing: Timing) -> dict[str, Any]:
    best, eager = timing.best_baseline, timing.speedups.get("eager")
    return {
        "time_us": timing.candidate.median_us,
        "time_interval_us": (timing.candidate.low_us, timing.candidate.high_us),
        "speedup_eager": eager.value if eager else None,
        "speedup_best_baseline": timing.speedups[best].value,
        "best_baseline": best,
    }
