"""The loop: plan, code, verify, route, integrate.  Read this to know what stitch does.

Every step is announced as an event, and the session's state is the fold of those events, so the
story below keeps no state of its own.
"""

from time import monotonic

from stitch_tui.agents import events, goal, route
from stitch_tui.agents.record import Record
from stitch_tui.agents.roles import CodeBrief, Coder, PlanBrief, Planner, Verifier
from stitch_tui.agents.route import Next, Route
from stitch_tui.agents.settings import Settings
from stitch_tui.agents.state import Candidate, Session, Subtask, SubtaskState
from stitch_tui.agents.workspace import Workspace
from stitch_tui.tools.errors import ExitCode, LimitReached
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.verdict import Verdict


class Workflow:
    """One run of a session from the reference to the stitched program."""

    def __init__(
        self,
        record: Record,
        brief: PlanBrief,
        workspace: Workspace,
        planner: Planner,
        coder: Coder,
        verifier: Verifier,
        settings: Settings,
    ) -> None:
        self._record, self._brief, self._workspace = record, brief, workspace
        self._planner, self._coder, self._verifier = planner, coder, verifier
        self._settings = settings
        self._deadline = monotonic() + settings.limits.minutes * 60

    async def run(self) -> ExitCode:
        """Plan, solve each subtask, stitch, and say how it ended."""
        try:
            await self._plan()
            for subtask in self._ordered():
                await self._solve(subtask.id)
            if any(subtask.best for subtask in self._ordered(ended=True)):
                await self._integrate()
        except LimitReached as limit:
            return self._finish(limit.exit_code, str(limit))
        return self._finish(*goal.reached(self._session, self._settings.goal))

    # plan ---------------------------------------------------------------------------------------

    async def _plan(self) -> None:
        plan = await self._planner.plan(self._brief)
        self._record.emit(events.PlanProposed(plan=plan))
        self._record.emit(events.PlanApproved(who=self._settings.autonomy.mode))

    def _ordered(self, ended: bool = False) -> tuple[Subtask, ...]:
        plan = self._session.plan
        return tuple(s for s in plan.subtasks if s.state.ended is ended) if plan else ()

    # code, verify, route ------------------------------------------------------------------------

    async def _solve(self, id: str) -> None:
        """Attempt one subtask until it is routed to its end."""
        self._record.emit(events.SubtaskStarted(subtask=id, title=self._subtask(id).title))
        following = Route(Next.REPAIR, "")
        while following.next in (Next.REPAIR, Next.OPTIMISE):
            candidate = await self._coder.code(self._code_brief(id))
            if candidate is None:
                following = route.exhausted(self._subtask(id))
            else:
                await self._attempt(id, candidate)
                following = route.route(self._session, self._subtask(id), self._settings)
            self._record.emit(events.Routed(subtask=id, next=following.next, reason=following.reason))
        done = following.next is Next.DONE
        self._record.emit(
            events.SubtaskFinished(
                subtask=id,
                state=SubtaskState.DONE if done else SubtaskState.FAILED,
                best=self._subtask(id).best,
                reason=following.reason,
            )
        )

    async def _attempt(self, id: str, candidate: Candidate) -> None:
        """Write, judge and commit one candidate."""
        attempts = self._session.attempts_of(id)
        number = self._begin(id, len(attempts) + 1, route.kind_of_next(attempts))
        source = self._workspace.write_candidate(id, candidate)
        self._record.emit(
            events.CodeWritten(iteration=number, subtask=id, candidate=candidate, path=source.name)
        )
        self._enter(id, SubtaskState.CHECKING)
        verdict = await self._verifier.verify(number, self._subtask(id), source)
        best = self._session.best_of(self._subtask(id))
        self._judge(number, id, verdict, route.outcome(verdict, best))
        self._commit(number)

    def _code_brief(self, id: str) -> CodeBrief:
        subtask = self._subtask(id)
        self._enter(id, SubtaskState.CODING)
        return CodeBrief(
            graph=self._brief.graph,
            subtask=subtask,
            device=self._session.device,
            attempts=self._session.attempts_of(id),
            best=self._session.best_of(subtask),
        )

    # integrate ----------------------------------------------------------------------------------

    async def _integrate(self) -> None:
        """Stitch the best kernels into one program and judge it end to end."""
        number = self._begin("", 1, Kind.INTEGRATE)
        bundle = self._workspace.write_bundle(self._session)
        verdict = await self._verifier.verify_program(number, bundle)
        self._judge(number, "", verdict, Outcome.KEPT if verdict.correct else Outcome.WRONG)
        self._commit(number)

    def _finish(self, code: ExitCode, reason: str) -> ExitCode:
        self._record.emit(
            events.SessionFinished(
                status=goal.status(code),
                exit_code=code,
                reason=reason,
                best=self._workspace.seal(),
                coverage=self._workspace.coverage(self._session),
            )
        )
        return code

    # one iteration's bookkeeping ----------------------------------------------------------------

    @property
    def _session(self) -> Session:
        return self._record.session

    def _subtask(self, id: str) -> Subtask:
        return self._session.subtask(id)

    def _enter(self, id: str, state: SubtaskState) -> None:
        if self._subtask(id).state is not state:
            self._record.emit(events.SubtaskUpdated(subtask=id, state=state))

    def _begin(self, subtask: str, attempt: int, kind: Kind) -> int:
        number = len(self._session.iterations) + 1
        if monotonic() > self._deadline:
            raise LimitReached(f"the run's limit of {self._settings.limits.minutes:g} minutes is reached")
        self._record.emit(
            events.IterationStarted(iteration=number, subtask=subtask, attempt=attempt, kind=kind)
        )
        return number

    def _judge(self, number: int, subtask: str, verdict: Verdict, outcome: Outcome) -> None:
        self._record.emit(
            events.VerdictReached(iteration=number, subtask=subtask, verdict=verdict, outcome=outcome)
        )

    def _commit(self, number: int) -> None:
        self._record.emit(events.CommitIntended(iteration=number, parent=self._workspace.tip))
        sha, subject = self._workspace.commit(self._session, number)
        self._record.emit(events.IterationCommitted(iteration=number, sha=sha, subject=subject))
