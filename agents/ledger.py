"""Journal and branch in step: iterations are begun, judged, ended, committed, and mended after a kill.

Each commit is announced by ``commit.intended`` first.  Whatever the moment of a kill, `mend` finds the
iteration without a commit and either adopts the branch's tip or makes the commit that is missing.
"""

from stitch_tui.agents import events
from stitch_tui.agents.gates import Gates, Overtaken
from stitch_tui.agents.record import Record
from stitch_tui.agents.workspace import Workspace
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.history import Commit, Iteration
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.verdict import Verdict


class Ledger:
    """Iterations of one session; nothing but this moves its branch, and it asks the gates each time."""

    def __init__(self, record: Record, workspace: Workspace, gates: Gates) -> None:
        self._record, self._workspace, self._gates = record, workspace, gates

    def begin(self, subtask: str, kind: Kind) -> int:
        """Start the next iteration; its number."""
        session = self._record.session
        number = len(session.iterations) + 1
        attempt = 1 + sum(i.subtask == subtask and not _again(i.kind) for i in session.iterations)
        self._record.emit(
            events.IterationStarted(iteration=number, subtask=subtask, attempt=attempt, kind=kind)
        )
        return number

    def judge(self, number: int, verdict: Verdict, outcome: Outcome) -> None:
        """Write the verdict down."""
        subtask = self._record.session.iteration(number).subtask
        self._record.emit(
            events.VerdictReached(iteration=number, subtask=subtask, verdict=verdict, outcome=outcome)
        )

    def commit(self, number: int) -> None:
        """Commit an iteration that has ended.

        Raises:
            Overtaken: the step's generation is gone.
            Denied: a rule denies commits.
        """
        self._gates.check("commit")
        self._record.emit(events.CommitIntended(iteration=number, parent=self._workspace.tip))
        sha, subject = self._workspace.commit(self._record.session, number)
        self._record.emit(events.IterationCommitted(iteration=number, sha=sha, subject=subject))

    def close(self, cause: Overtaken) -> None:
        """End the iteration that is under way, if one is, and commit what there is of it.

        Raises:
            Denied: a rule denies commits.
        """
        pending = self._record.session.pending
        if pending is None:
            return
        if pending.outcome is None:
            self._record.emit(
                events.IterationEnded(iteration=pending.number, outcome=cause.outcome, reason=cause.reason)
            )
        self.commit(pending.number)

    def restore(self, number: int) -> None:
        """Commit the files of an earlier iteration anew.

        Raises:
            Denied: a rule denies commits.
        """
        self._gates.check("commit")
        decisions = "; ".join(self._record.session.undelivered)
        self._adopt_repeat(self._workspace.restore(number, decisions))

    def seal(self) -> str:
        """See that the branch ends with the best iteration; the name of its last commit, or empty.

        Where a rule denies commits, it ends with what it ends with.
        """
        if self._gates.denies("commit"):
            return ""
        sealed = self._workspace.seal()
        if sealed is None:
            return ""
        if sealed.sha != self._record.session.tip:
            self._adopt_repeat(sealed)
        return sealed.sha

    def mend(self) -> None:
        """After a kill: adopt the commits that the journal does not know, and close what was under way.

        Raises:
            UsageError: the branch holds a commit that is not this session's next one.
            Denied: a commit is missing, and a rule denies commits.
        """
        for commit in self._workspace.commits_after(self._record.session.tip):
            pending, entry = self._record.session.pending, commit.iteration
            if pending is not None and pending.number == entry.iteration:
                if pending.outcome is None:
                    self._record.emit(_ended(pending.number, entry.outcome, entry.title))
                self._committed(commit)
            elif pending is None and entry.iteration == len(self._record.session.iterations) + 1:
                self._decided(entry)
                self._adopt_repeat(commit)
            else:
                raise UsageError(
                    f"its journal does not expect iteration {entry.iteration} on the session's branch",
                    where=commit.sha[:12],
                    advice="start a new session: stitch --auto",
                )
        self.close(Overtaken("the engine was killed"))

    def _decided(self, entry: Iteration) -> None:
        """Journal what a person restored while no engine ran; one that ran has journalled it already."""
        known = any(said.startswith("restore ") for said in self._record.session.undelivered)
        if entry.kind is Kind.RESTORE and not known:
            self._record.emit(events.Decision(who="human", action="restore", iteration=entry.restores))

    def _adopt_repeat(self, commit: Commit) -> None:
        """Journal a commit that repeats an earlier one: a restore or seal."""
        entry = commit.iteration
        self._record.emit(
            events.IterationStarted(
                iteration=entry.iteration, subtask="", attempt=entry.attempt, kind=entry.kind
            )
        )
        self._record.emit(_ended(entry.iteration, Outcome.KEPT, entry.title))
        self._committed(commit)

    def _committed(self, commit: Commit) -> None:
        entry = commit.iteration
        self._record.emit(
            events.IterationCommitted(iteration=entry.iteration, sha=commit.sha, subject=entry.subject)
        )


def _ended(number: int, outcome: Outcome, reason: str) -> events.IterationEnded:
    return events.IterationEnded(
        iteration=number,
        outcome=Outcome.KEPT if outcome not in (Outcome.CANCELLED, Outcome.REDIRECTED) else outcome,
        reason=reason,
    )


def _again(kind: Kind) -> bool:
    return kind in (Kind.RESTORE, Kind.SEAL)
