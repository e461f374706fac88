"""The loop: plan, decide, code, verify, route, integrate.  Read this to know what stitch does.

Every step is announced as an event, and the session's state is the fold of those events, so the
story below keeps no state of its own: after a kill it goes on from the state.  `gates` says where it
waits for a human and where a human's decision turns it back; `ledger` writes iterations down.
"""

from collections.abc import Sequence
from typing import Literal, cast

from stitch_tui.agents import events, goal, route
from stitch_tui.agents.attempts import Attempts
from stitch_tui.agents.bisection import guilty
from stitch_tui.agents.cast import Cast
from stitch_tui.agents.deadline import Deadline
from stitch_tui.agents.gates import Gates, Overtaken, Stopped
from stitch_tui.agents.hand import Hand
from stitch_tui.agents.host import route as host_route
from stitch_tui.agents.ledger import Ledger
from stitch_tui.agents.plan_outline import outline
from stitch_tui.agents.record import Record
from stitch_tui.agents.roles import PlanBrief, Verifier
from stitch_tui.agents.route import Next, Route
from stitch_tui.agents.search import Search
from stitch_tui.agents.settings import Settings
from stitch_tui.agents.state import Author, Candidate, Plan, Session, Status, Subtask, SubtaskState
from stitch_tui.agents.weighing import weighed
from stitch_tui.agents.workspace import Workspace
from stitch_tui.tools.errors import ExitCode, LimitReached
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.verdict import Verdict

_STEPS = (Next.REPAIR, Next.OPTIMISE, Next.REPLAN)
Ended = Literal[SubtaskState.DONE, SubtaskState.SKIPPED, SubtaskState.FAILED]
_END: dict[Next, Ended] = {
    Next.DONE: SubtaskState.DONE,
    Next.REPLACED: SubtaskState.SKIPPED,
}


class Workflow:
    """One run of a session from the reference, or from where it was left, to the stitched program."""

    def __init__(
        self,
        record: Record,
        brief: PlanBrief,
        workspace: Workspace,
        cast: Cast,
        verifier: Verifier,
        gates: Gates,
        hand: Hand,
        settings: Settings,
    ) -> None:
        self._record, self._brief, self._workspace = record, brief, workspace
        self._cast, self._verifier = cast, verifier
        self._gates, self._settings = gates, settings
        self._ledger = Ledger(record, workspace, gates)
        self._search = Search(record, cast.coder, verifier, settings.search)
        self._deadline = Deadline(settings.limits.minutes, lambda: gates.waited_s)
        self._attempts = Attempts(
            record, brief, workspace, cast.adviser, verifier, gates, hand, self._ledger, self._deadline
        )

    async def run(self) -> ExitCode:
        """Plan, solve each subtask, stitch, and say how it ended."""
        try:
            if self._session.plan is None:
                await self._plan()
            await self._work()
        except LimitReached as limit:
            return self._finish(limit.exit_code, str(limit))
        except Stopped as stop:
            return self._finish(ExitCode.GOAL_NOT_MET, stop.reason, Status.STOPPED)
        covered = self._workspace.coverage(self._session)
        return self._finish(*goal.reached(self._session, self._settings.goal, covered))

    async def _plan(self) -> None:
        async with self._gates.step(), self._deadline.kept():
            plan = await self._cast.planner.plan(self._brief)
        planned = host_route.planned(plan, self._settings, self._session.device)
        self._record.emit(events.PlanProposed(plan=self._weighed(planned)))

    async def _work(self) -> None:
        """Judge what a human wrote, solve what is approved and stitch it, until nothing is left to do."""
        while True:
            subtask = await self._gates.next_subtask()
            if self._gates.by_hand:
                await self._judge_by_hand()
            elif subtask and (not subtask.is_host or route.stitched(self._session)):
                await self._solve(subtask.id)
            elif not route.stitched(self._session):
                await self._integrate()
            else:
                return

    # code, verify, route ------------------------------------------------------------------------

    async def _solve(self, id: str) -> None:
        """Attempt one subtask until it is routed to its end, a human ends it, or the program changes."""
        if known := route.twin(self._session, self._subtask(id), self._brief.graph):
            self._end_as(id, known)
            return
        if self._subtask(id).state is SubtaskState.APPROVED:
            self._record.emit(events.SubtaskStarted(subtask=id, title=self._subtask(id).title))
        following = self._route(id)
        while following.next in _STEPS:
            if self._gates.by_hand:
                await self._judge_by_hand()
                following = self._route(id)
                continue
            try:
                following = await (self._replan(id) if following.next is Next.REPLAN else self._attempt(id))
            except Overtaken as cause:
                self._ledger.close(cause)
                if isinstance(cause, Stopped):
                    raise
                following = self._route(id)
            if self._subtask(id).state.ended:
                return
            self._record.emit(events.Routed(subtask=id, next=following.next, reason=following.reason))
        if following.next is Next.INTEGRATE:
            return
        self._end(id, _END.get(following.next, SubtaskState.FAILED), following.reason)

    def _end(self, id: str, state: Ended, reason: str) -> None:
        lost = route.loses(self._session, self._subtask(id))
        best = None if lost else self._subtask(id).best
        self._record.emit(events.SubtaskFinished(subtask=id, state=state, best=best, reason=lost or reason))

    def _end_as(self, id: str, known: Subtask) -> None:
        """What was judged of a subtask of the same form is true of this one."""
        reason = f"as {known.id}, which has the same operators and shapes"
        if known.best is None:
            reason = f"{reason}: {known.reason}"
        assert known.state in (SubtaskState.DONE, SubtaskState.FAILED)
        self._record.emit(
            events.SubtaskFinished(subtask=id, state=known.state, best=known.best, reason=reason)
        )

    async def _judge_by_hand(self) -> None:
        """Judge what a human wrote as any other attempt; what the subtask was before, it is again."""
        while self._gates.by_hand:
            id = next(iter(self._gates.by_hand))
            source, before = self._gates.by_hand.pop(id), self._subtask(id)
            candidate = Candidate(source=source, strategy="by hand", author=Author.HUMAN)
            try:
                async with self._gates.step(id):
                    await self._attempts.judge(id, candidate, Kind.HUMAN)
            except Overtaken as cause:
                self._ledger.close(cause)
                if isinstance(cause, Stopped):
                    raise
            if not before.state.ended:
                self._attempts.enter(id, before.state)
            elif (kept := self._subtask(id).best) and kept != before.best:
                self._end(id, SubtaskState.DONE, "written by hand")
            else:
                self._end(id, cast(Ended, before.state), before.reason)

    async def _attempt(self, id: str) -> Route:
        """One step: a candidate is asked for, written, judged and committed; what follows."""
        async with self._gates.step(id):
            if self._subtask(id).state.ended:
                return Route(Next.DONE, self._subtask(id).reason)
            if (now := self._route(id)).next is Next.INTEGRATE:  # a version was restored while it waited
                return now
            brief = self._attempts.brief(id)
            async with self._deadline.kept():
                if await self._search.before(brief):
                    brief = self._attempts.brief(id)
                candidate = await self._cast.coder.code(brief)
            subtask = self._subtask(id)
            if candidate is None:
                return host_route.exhausted(subtask) if subtask.is_host else route.exhausted(subtask)
            await self._attempts.judge(id, candidate)
            following = self._route(id)
            if following.next in _STEPS:
                await self._attempts.advise(id)
        return following

    async def _replan(self, id: str) -> Route:
        """Other subtasks in the place of one that got nowhere, where the Planner knows any."""
        async with self._gates.step(id):
            failed = self._subtask(id)
            reason = self._route(id).reason
            before = outline(self._session)
            async with self._deadline.kept():
                plan = await self._cast.planner.replan(self._brief, self._session, failed, reason)
            if plan is None:
                return Route(Next.GIVE_UP, reason)
            if outline(self._session) != before:  # a human's changes are not in it
                return Route(Next.REPLAN, "the plan was edited meanwhile")
            self._record.emit(events.PlanUpdated(plan=self._weighed(plan)))
        return route.replaced(failed, plan, reason)

    def _weighed(self, plan: Plan) -> Plan:
        return weighed(plan, self._brief.graph, self._brief.peaks)

    # integrate ----------------------------------------------------------------------------------

    async def _integrate(self) -> None:
        """Stitch the best kernels into one program and judge it end to end."""
        try:
            async with self._gates.step():
                number = self._attempts.begin("", Kind.INTEGRATE)
                self._attempts.check_write()
                bundle = self._workspace.write_bundle(self._session)
                verdict = await self._verifier.verify_program(number, bundle)
                self._ledger.judge(number, verdict, Outcome.KEPT if verdict.correct else Outcome.WRONG)
                self._ledger.commit(number)
                if not verdict.correct:
                    await self._reopen_guilty(number, verdict)
        except Overtaken as cause:
            self._ledger.close(cause)
            if isinstance(cause, Stopped):
                raise

    async def _reopen_guilty(self, number: int, wrong: Verdict) -> None:
        """Find the kernel that makes the program wrong, and take its subtask up again.

        A host program that a Coder wrote is let go first: it was judged with other kernels.
        """
        if (host := self._session.host) and host.best is not None:
            reason = f"wrong with the kernels as they are now: {wrong.summary}"
            self._record.emit(events.SubtaskReopened(subtask=host.id, reason=reason))
            return

        async def passes(part: Sequence[str]) -> bool:
            bundle = self._workspace.write_bundle(self._session, part)
            verdict = await self._verifier.verify_program(number, bundle)
            said = f"the program with {', '.join(part)} alone is {verdict.category}"
            self._record.emit(events.Warned(text=said))
            return verdict.correct

        kept = {s.id: s.best for s in self._session.kernels if s.best is not None}
        id = await guilty(list(kept), passes)
        if id is None or (best := kept[id]) is None:
            return
        alone = route.wrong_in_program(wrong)
        self._record.emit(
            events.VerdictReached(iteration=best, subtask=id, verdict=alone, outcome=Outcome.WRONG)
        )
        self._record.emit(events.SubtaskReopened(subtask=id, reason=alone.summary))

    def _finish(self, code: ExitCode, reason: str, status: Status | None = None) -> ExitCode:
        self._gates.settle()
        self._record.emit(
            events.SessionFinished(
                status=status or goal.status(code),
                exit_code=code,
                reason=reason,
                best=self._ledger.seal(),
                coverage=self._workspace.coverage(self._session),
            )
        )
        return code

    # the state ----------------------------------------------------------------------------------

    @property
    def _session(self) -> Session:
        return self._record.session

    def _subtask(self, id: str) -> Subtask:
        return self._session.subtask(id)

    def _route(self, id: str) -> Route:
        """What follows on a subtask as it stands."""
        routed = host_route.route if self._subtask(id).is_host else route.route
        return routed(self._session, self._subtask(id), self._settings)
