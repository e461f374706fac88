"""The process that owns a session: opens what it needs, serves viewers, and always says how it ended."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from stitch_tui.agents import events, goal, journal, presence
from stitch_tui.agents.bench import OpenBench, Workbench
from stitch_tui.agents.cast import Cast, cast, names_of, require_models
from stitch_tui.agents.control import Control
from stitch_tui.agents.events import Event
from stitch_tui.agents.gates import Gates, Overtaken
from stitch_tui.agents.hand import Hand
from stitch_tui.agents.interruption import Interruption, interruptible
from stitch_tui.agents.journal import Journal
from stitch_tui.agents.ledger import Ledger
from stitch_tui.agents.plan_by_hand import PlanByHand
from stitch_tui.agents.presence import Presence
from stitch_tui.agents.profile import measured_reference
from stitch_tui.agents.prompt_text import hardware, system_text
from stitch_tui.agents.record import Record
from stitch_tui.agents.recorded_options import OPTIONS, as_recorded
from stitch_tui.agents.roles import PlanBrief, Verifier
from stitch_tui.agents.server import Server
from stitch_tui.agents.settings import Settings
from stitch_tui.agents.state import Session, Status
from stitch_tui.agents.verifier import ToolVerifier
from stitch_tui.agents.workflow import Workflow
from stitch_tui.agents.workspace import Workspace
from stitch_tui.tools.bundle import read_layout
from stitch_tui.tools.errors import EnvironmentFault, ExitCode, StitchError, UsageError
from stitch_tui.tools.gpu import EmulatorDevice
from stitch_tui.tools.graph import Graph
from stitch_tui.tools.history import History, Started, session_name, state_folder


@dataclass(frozen=True)
class Parts:
    """What a run is made of; the Verifier is made once the graph is known."""

    cast: Callable[[Settings, Record, Callable[[], None]], Cast] = cast
    verifier: Callable[[Workbench, Graph, Record, Gates], Verifier] = ToolVerifier
    workbench: Callable[[Path, Settings, str, str], Workbench] = Workbench


@dataclass(frozen=True)
class Request:
    """What an engine shall do."""

    project: Path
    settings: Settings
    reference: str = ""
    """Of a new session."""
    resume: str | None = None
    """Take up this session, or the latest for an empty name; None: begin a new one."""


async def run(request: Request, emit: Callable[[Event], None], parts: Parts | None = None) -> ExitCode:
    """Be the project's engine until the goal or a limit is reached, or somebody ends the run.

    Nothing in the project changes before the reference has been opened: a run that cannot begin takes the
    ``.stitch/`` that it made away again.  From the first event on, ``session.finished`` is the last one,
    also after an error or a signal.  Where `emit` fails the run goes on without it.

    Raises:
        StitchError: the run could not begin; no event was emitted.
        Exception: what `emit` raised, once the run has ended; no OSError, which is its output's to report.
    """
    require_models(request.settings)
    git = request.settings.git
    history = History.open(request.project, prefix=git.branch_prefix, author=git.author)
    with interruptible() as interruption:
        try:
            async with presence.claimed(request.project) as here:
                known = _resumed(request, history)
                engine = _Engine(request, known, history, here, emit, parts or Parts())
                try:
                    code = await engine.run(interruption)
                finally:
                    await engine.close()
                for fault in engine.faults:
                    raise fault
                return code
        except asyncio.CancelledError:
            if not interruption.absorbed():
                raise
            raise Interrupted(interruption.code) from None


class Interrupted(StitchError):
    """A signal ended the run before it began."""

    def __init__(self, code: ExitCode) -> None:
        super().__init__("interrupted")
        self.exit_code = code


def _resumed(request: Request, history: History) -> Session | None:
    """The state of the session to take up.

    Raises:
        UsageError: there is none, its branch is gone, or its journal cannot be read.
    """
    if request.resume is None:
        return None
    known = journal.sessions(request.project)
    name = request.resume or next(iter(known), "")
    if name not in known:
        raise UsageError(
            f"no session {name} to resume" if name else "no session to resume",
            where=str(request.project / ".stitch" / "sessions"),
            advice=f"there is {', '.join(known[:5])}" if known else "start one: stitch --auto",
        )
    session = events.fold(journal.read(journal.path_of(request.project, name)))
    if not session.id:
        raise UsageError("the session ended before it began", where=name, advice="start one: stitch --auto")
    if not session.iterations and name not in {known.name for known in history.sessions()}:
        history.open_branch(session.branch, session.tip)  # a kill came between the first event and this
    history.session(name)
    return session


class _Engine:
    """One session, new or resumed."""

    def __init__(
        self,
        request: Request,
        known: Session | None,
        history: History,
        here: Presence,
        emit: Callable[[Event], None],
        parts: Parts,
    ) -> None:
        self._request, self._known, self._history = request, known, history
        self._here, self._emit, self._parts = here, emit, parts
        settings = request.settings
        if known:
            kept = as_recorded(settings.reference, known)
            settings = settings.model_copy(update={"reference": kept})
        self._settings = settings
        reference = known.target if known else request.reference
        sha256 = known.sha256 if known else ""
        self._workbench = parts.workbench(request.project, settings, reference, sha256)
        self._server: Server | None = None
        self._ledger: Ledger | None = None
        self._roles: Cast | None = None

    async def run(self, interruption: Interruption) -> ExitCode:
        """Open the reference, then work, and emit how it ended."""
        opened = await self._workbench.opened()
        _require_reachable(self._settings, opened, self._known)
        self._begin(opened)
        try:
            return await self._work(opened)
        except Overtaken as stop:  # before there was a workflow
            return self._end(ExitCode.GOAL_NOT_MET, stop.reason, Status.STOPPED)
        except StitchError as error:
            self._fail(type(error).__name__, str(error), error.exit_code)
            return self._end(error.exit_code, str(error))
        except asyncio.CancelledError:
            if not interruption.absorbed() or interruption.signal is None:
                raise
            return self._end(interruption.code, f"ended by {interruption.signal.name}")
        except Exception as fault:  # a fault of stitch's own: reported above, and the journal still ends
            self._fail(type(fault).__name__, str(fault), ExitCode.GOAL_NOT_MET)
            self._end(ExitCode.GOAL_NOT_MET, "a fault in stitch itself")
            raise

    @property
    def faults(self) -> list[Exception]:
        """What is wrong with those who listened, and not with what they write to."""
        return [fault for fault in self._record.faults if not isinstance(fault, OSError)]

    async def close(self) -> None:
        """Give up everything that is open."""
        if self._server:
            await self._server.close()
        if self._roles:
            await self._roles.close()
        await self._workbench.release()

    def _begin(self, opened: OpenBench) -> None:
        """Open the journal, and prepare the branch: it is opened once the journal says so."""
        name = self._known.id if self._known else self._new_name(opened)
        self._started = self._taken_up(name) if self._known else self._history.prepare_session(name)
        self._folder = journal.path_of(self._request.project, name).parent
        file = Journal(self._folder / "events.jsonl", name)
        self._record = Record(file, self._published, self._emit, session=self._known)
        self._gates = Gates(self._record, self._settings, self._workbench.release)
        self._control = Control(self._record, self._gates)

    def _new_name(self, opened: OpenBench) -> str:
        folder = state_folder(self._request.project) / "sessions"
        taken = {known.name for known in self._history.sessions()} | {path.name for path in folder.glob("*")}
        return session_name(Path(opened.summary.path).stem, datetime.now(), taken)

    def _taken_up(self, name: str) -> Started:
        branch = self._history.session(name)
        return Started(branch.origin, branch.ref.removeprefix("refs/heads/"), branch.tip)

    def _published(self, event: Event) -> None:
        if self._server:
            self._server.publish(event)

    async def _work(self, opened: OpenBench) -> ExitCode:
        self._server = Server(self._folder / "events.jsonl", self._control.carry_out)
        await self._server.start(self._here.bind())
        self._here.announce(self._record.session.id)
        self._announce(opened)
        roles = self._roles = self._parts.cast(
            self._settings, self._record, lambda: self._gates.check("network")
        )
        # a session that was paused when it was killed has a plan, which can be changed while it is paused
        async with self._gates.step(pausable=self._known is None):
            times = await measured_reference(opened, self._record, self._folder)
            layout = await read_layout(opened.judge)
        graph = times.graph
        workspace = Workspace(
            self._request.project, self._history, self._started, opened.summary, layout, graph
        )
        self._ledger = Ledger(self._record, workspace, self._gates)
        self._ledger.mend()
        brief = PlanBrief(
            graph=times.planned,
            source=opened.summary.source,
            device=str(opened.device),
            notes=tuple(note.text for note in opened.summary.notes),
            peaks=opened.peaks,
            hardware=hardware(opened.device, opened.peaks),
            system=system_text(times.trace),
        )
        self._control.begin(brief.graph, brief.peaks, self._ledger)
        verifier = self._parts.verifier(self._workbench, graph, self._record, self._gates)
        plan = PlanByHand(self._record, self._gates, workspace, self._control.carry_out)
        hand = Hand(self._record, self._gates, workspace, plan)
        workflow = Workflow(
            self._record, brief, workspace, roles, verifier, self._gates, hand, self._settings
        )
        async with hand.watched():
            return await workflow.run()

    def _announce(self, opened: OpenBench) -> None:
        device = opened.device
        if self._known:
            self._record.emit(
                events.SessionResumed(device=str(device), autonomy=self._settings.autonomy.mode)
            )
            return
        self._record.emit(
            events.SessionStarted(
                reference=opened.summary.path,
                device=str(device),
                device_reason=device.reason if isinstance(device, EmulatorDevice) else "",
                branch=self._started.branch,
                base=self._started.origin.base,
                tip=self._started.sha,
                target=self._request.reference,
                options=self._settings.reference.model_dump(mode="json", include=OPTIONS),
                autonomy=self._settings.autonomy.mode,
                roles=names_of(self._settings),
            )
        )
        self._history.open_branch(self._started.branch, self._started.sha)
        if self._started.notice:
            self._record.emit(events.Warned(text=self._started.notice))

    def _fail(self, kind: str, text: str, code: ExitCode) -> None:
        self._record.emit(events.Failed(kind=kind, text=text, exit_code=code))

    def _end(self, code: ExitCode, reason: str, status: Status | None = None) -> ExitCode:
        best = ""
        with contextlib.suppress(StitchError):  # the first error is the one to report
            best = self._sealed(reason)
        self._record.emit(
            events.SessionFinished(
                status=status or goal.status(code), exit_code=code, reason=reason, best=best
            )
        )
        return code

    def _sealed(self, reason: str) -> str:
        """Close the iteration that is under way and seal the branch, unless a rule denies commits."""
        if self._ledger is None or self._gates.denies("commit"):
            return ""
        self._ledger.close(Overtaken(reason))
        self._gates.settle()
        return self._ledger.seal()


def _require_reachable(settings: Settings, opened: OpenBench, known: Session | None) -> None:
    """A speedup cannot be measured on the emulator, and verdicts of two devices do not compare.

    Raises:
        EnvironmentFault: the goal is a speedup and there is no GPU, or the session ran on another device.
    """
    if settings.goal.speedup and isinstance(opened.device, EmulatorDevice):
        raise EnvironmentFault(
            "a speedup cannot be measured on the emulator",
            where="goal.speedup",
            why=opened.device.reason,
            advice="set it to 0 for a functional goal, or use a machine with a GPU",
        )
    if known and known.device != str(opened.device):
        raise EnvironmentFault(
            f"the session ran on {known.device}, and this is {opened.device}",
            where=known.id,
            advice="choose that device with --device, or start a new session",
        )
