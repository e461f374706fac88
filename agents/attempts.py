"""One attempt at a subtask: what the Coder is told, then written, judged, committed and commented on."""

from stitch_tui.agents import events, route
from stitch_tui.agents.deadline import Deadline
from stitch_tui.agents.gates import Gates
from stitch_tui.agents.hand import Hand
from stitch_tui.agents.host import route as host_route
from stitch_tui.agents.ledger import Ledger
from stitch_tui.agents.record import Record
from stitch_tui.agents.roles import AdviceBrief, Adviser, CodeBrief, HostBrief, PlanBrief, Verifier
from stitch_tui.agents.state import Candidate, Session, Subtask, SubtaskState
from stitch_tui.agents.workspace import Workspace
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.verdict import Verdict


class Attempts:
    """The attempts of one run; each asks the gates before it writes, and is an iteration whatever it is."""

    def __init__(
        self,
        record: Record,
        brief: PlanBrief,
        workspace: Workspace,
        adviser: Adviser,
        verifier: Verifier,
        gates: Gates,
        hand: Hand,
        ledger: Ledger,
        deadline: Deadline,
    ) -> None:
        self._record, self._brief, self._workspace = record, brief, workspace
        self._adviser, self._verifier, self._gates = adviser, verifier, gates
        self._hand, self._ledger, self._deadline = hand, ledger, deadline

    def brief(self, id: str) -> CodeBrief:
        """What the Coder is told about the next attempt."""
        subtask, attempts = self._subtask(id), self._session.attempts_of(id)
        self.enter(id, SubtaskState.CODING)
        return CodeBrief(
            graph=self._brief.graph,
            subtask=subtask,
            device=self._session.device,
            attempts=tuple(a for a in attempts if a.outcome is not Outcome.CANCELLED),
            best=self._session.best_of(subtask),
            source=self._brief.source,
            hardware=self._brief.hardware,
            host=self._host_brief() if subtask.is_host else None,
        )

    def _host_brief(self) -> HostBrief:
        program, session = self._session.program, self._session
        assert program is not None, "the host program comes after the integration"
        write = self._workspace.host_program
        return HostBrief(text=write(session), own=write(session, own=True), program=program)

    async def judge(self, id: str, candidate: Candidate, kind: Kind | None = None) -> None:
        """Write a candidate, judge it, and commit it, kept or not.

        Args:
            kind: why it was made; None: as the attempts before it say.

        Raises:
            Overtaken: a human turned the step back.
            LimitReached: the run's time is up.
        """
        subtask = self._subtask(id)
        if kind is None:
            kind = Kind.PROGRAM if subtask.is_host else route.kind_of_next(self._session.attempts_of(id))
        number = self.begin(id, kind)
        self.check_write()
        source = self._workspace.path_of(subtask)
        self._record.emit(
            events.CodeWritten(iteration=number, subtask=id, candidate=candidate, path=source.name),
            lambda: self._workspace.write_candidate(subtask, self._announced(number)),
        )
        self.enter(id, SubtaskState.CHECKING)
        if candidate.refused:
            verdict = route.refused(candidate, self._session.device)
        elif subtask.is_host:
            verdict = await self._verified_host(number)
        else:
            verdict = await self._verifier.verify(number, self._subtask(id), source)
        best = self._session.best_of(self._subtask(id))
        outcome = host_route.outcome(verdict) if subtask.is_host else route.outcome(verdict, best, kind)
        self._ledger.judge(number, verdict, Outcome.REDIRECTED if self._gates.redirected else outcome)
        self._ledger.commit(number)

    async def _verified_host(self, number: int) -> Verdict:
        """The verdict on the program with the host program of iteration `number`."""
        bundle = self._workspace.write_bundle(self._session)
        replaced = self._workspace.write_replaced(self._session)
        return await self._verifier.verify_program(number, bundle, replaces=replaced)

    async def advise(self, id: str) -> None:
        """What to change, from the last verdict; said by the Verifier's model, else by rules.

        Of the host program the next prompt has the rules' findings.

        Raises:
            LimitReached: the run's time is up.
        """
        if self._subtask(id).is_host:
            return
        *earlier, last = self._session.attempts_of(id)
        if last.verdict is None or (last.candidate and last.candidate.refused):
            return
        brief = AdviceBrief(self._brief.graph, self._subtask(id), last, tuple(earlier), self._brief.hardware)
        async with self._deadline.kept():
            advice = await self._adviser.advise(brief)
        if advice:
            self._record.emit(events.Advised(iteration=last.number, subtask=id, advice=advice))

    def begin(self, subtask: str, kind: Kind) -> int:
        """Start the next iteration, of the program where `subtask` is empty; its number.

        Raises:
            LimitReached: the run's time is up.
        """
        self._deadline.check()
        return self._ledger.begin(subtask, kind)

    def check_write(self) -> None:
        """Pass, immediately before a file is written; what a human wrote there meanwhile is not lost."""
        self._hand.look(now=False)
        self._gates.check("write")

    def enter(self, id: str, state: SubtaskState) -> None:
        """Tell the state of a subtask, where it is another."""
        if self._subtask(id).state is not state:
            self._record.emit(events.SubtaskUpdated(subtask=id, state=state))

    def _announced(self, number: int) -> Candidate:
        """An iteration's candidate as the journal holds it, secrets masked."""
        announced = self._session.iteration(number).candidate
        assert announced
        return announced

    @property
    def _session(self) -> Session:
        return self._record.session

    def _subtask(self, id: str) -> Subtask:
        return self._session.subtask(id)
