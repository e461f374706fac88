"""A session's files: the work folder that a human may edit, the bundle, and the commits."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from stitch_tui.agents import plan_file, plan_outline
from stitch_tui.agents.state import Candidate, Session, Subtask
from stitch_tui.agents.state import Iteration as Attempt
from stitch_tui.tools.atomic_write import replace_file, writing
from stitch_tui.tools.bundle import Kernel, Layout, Program, ReferenceSource, coverage, render
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
        self.tip = started.sha
        """The branch's last commit."""

    def write_candidate(self, subtask: str, candidate: Candidate) -> None:
        """Put an attempt, which the journal knows already, where a human can see and edit it."""
        self._put(self.kernel_path(subtask), candidate.source.encode(), "cannot write a candidate")

    def edited(self, session: Session, subtask: Subtask) -> str:
        """A subtask's ``.cu`` as a person left it; empty when it is the engine's, or was judged already."""
        path = self.kernel_path(subtask.id)
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
        return "" if data == self._written.get(path) or text in sources or not text.strip() else text

    def read_plan(self) -> bytes | None:
        """The session's ``plan.toml`` as it lies there; None where there is none to read."""
        try:
            return read_regular(self.folder / plan_file.NAME, LARGEST_SOURCE_BYTES)
        except OSError:
            return None

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

    def kernel_path(self, subtask: str) -> Path:
        """Where a subtask's ``.cu`` lies for a human to edit."""
        return self.folder / "kernels" / f"{subtask}.cu"

    def _put(self, path: Path, data: bytes, what: str) -> None:
        with writing(path, what):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, data)
        self._written[path] = data

    def write_bundle(self, session: Session, only: Collection[str] | None = None) -> Path:
        """Write the stitched program of the best kernels; its folder.

        Args:
            only: these subtasks' kernels alone, in a folder apart; None: all of them.
        """
        folder = self.folder if only is None else self.folder / "part"
        if only is not None and session.plan is not None:
            subtasks = tuple(
                s if s.id in only else s.model_copy(update={"best": None}) for s in session.plan.subtasks
            )
            plan = session.plan.model_copy(update={"subtasks": subtasks})
            session = session.model_copy(update={"plan": plan})
        files = self._bundle(session, session.iterations[-1])
        if only is None:
            files[plan_file.NAME] = self._plan(files, session)
        for name, data in files.items():
            self._put(folder / name, data, "cannot write the stitched program")
        return folder

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
        kept = [s.region for s in _subtasks(session) if s.best is not None]
        return coverage(self._graph, kept).share

    def _bundle(self, session: Session, attempt: Attempt | None = None) -> dict[str, bytes]:
        """The program with the best kernels, and the attempt in the place of its own subtask's."""
        kernels = tuple(self._kernel(session, subtask, attempt) for subtask in _subtasks(session))
        return render(
            Program(
                graph=self._graph,
                kernels=kernels,
                reference=ReferenceSource(
                    text=self._summary.source,
                    class_name=self._summary.class_name,
                    mode=str(self._summary.flags["mode"]),
                    origin=self._summary.path,
                ),
                **dict(self._layout),
                verdict=attempt.verdict if attempt and not attempt.subtask else None,
                session=self._session,
            )
        )

    def _kernel(self, session: Session, subtask: Subtask, attempt: Attempt | None) -> Kernel:
        own = attempt is not None and attempt.subtask == subtask.id and attempt.candidate is not None
        chosen = attempt if own else session.best_of(subtask)
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
            subtask=subtask.id if subtask else PROGRAM,
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


def _subtasks(session: Session) -> tuple[Subtask, ...]:
    return session.plan.subtasks if session.plan else ()


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
