"""Owns a run: opens what it needs, lets the workflow tell its story, and always says how it ended."""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from stitch_tui.agents import events, goal
from stitch_tui.agents.bench import OpenBench, open_bench
from stitch_tui.agents.builtin.roles import BuiltinCoder, BuiltinPlanner
from stitch_tui.agents.events import Event
from stitch_tui.agents.interruption import Interruption, interruptible
from stitch_tui.agents.journal import Journal
from stitch_tui.agents.record import Record
from stitch_tui.agents.roles import PlanBrief
from stitch_tui.agents.settings import RoleSettings, Settings
from stitch_tui.agents.verifier import ToolVerifier
from stitch_tui.agents.workflow import Workflow
from stitch_tui.agents.workspace import Workspace
from stitch_tui.tools import reference as references
from stitch_tui.tools.errors import EnvironmentFault, ExitCode, StitchError, UsageError
from stitch_tui.tools.gpu import EmulatorDevice
from stitch_tui.tools.graph import Graph
from stitch_tui.tools.history import History, session_name, state_folder

MEASURE_SECONDS = 10.0
"""Longest time for measuring the reference's nodes."""


async def run_auto(
    project: Path, settings: Settings, reference: str, emit: Callable[[Event], None]
) -> ExitCode:
    """Work on `reference` until the goal or a limit is reached; asks nobody.

    Nothing in the project changes before the reference has been opened.  From the first event on,
    ``session.finished`` is the last one, also after an error or a signal.

    Raises:
        StitchError: the run could not begin; no event was emitted.
    """
    _require_supported(settings)
    history = History.open(project, prefix=settings.git.branch_prefix, author=settings.git.author)
    with interruptible() as interruption:
        try:
            async with open_bench(project, settings, reference) as opened:
                _require_reachable(settings, opened)
                return await _Session(project, settings, history, opened, emit).run(interruption)
        except asyncio.CancelledError:
            if not interruption.absorbed():
                raise
            raise Stopped(interruption.code) from None


class Stopped(StitchError):
    """A signal ended the run before it began."""

    def __init__(self, code: ExitCode) -> None:
        super().__init__("interrupted")
        self.exit_code = code


class _Session:
    """One session of the foreground engine."""

    def __init__(
        self,
        project: Path,
        settings: Settings,
        history: History,
        opened: OpenBench,
        emit: Callable[[Event], None],
    ) -> None:
        self._settings, self._opened, self._project = settings, opened, project
        taken = {known.name for known in history.sessions()}
        slug = Path(opened.summary.path).stem
        self._name = session_name(slug, datetime.now(), taken)
        folder = state_folder(project) / "sessions" / self._name
        self._started = history.start_session(self._name)
        self._history = history
        self._record = Record(Journal(folder / "events.jsonl", self._name), emit)

    async def run(self, interruption: Interruption) -> ExitCode:
        """Work, and emit how it ended."""
        try:
            return await self._work()
        except StitchError as error:
            self._record.emit(
                events.Failed(kind=type(error).__name__, text=str(error), exit_code=error.exit_code)
            )
            return self._end(error.exit_code, str(error))
        except asyncio.CancelledError:
            if not interruption.absorbed() or interruption.signal is None:
                raise
            return self._end(interruption.code, f"ended by {interruption.signal.name}")

    async def _work(self) -> ExitCode:
        self._announce()
        graph = await self._profile()
        summary = self._opened.summary
        workspace = Workspace(
            self._project, self._history, self._started, summary, self._opened.exported, graph
        )
        brief = PlanBrief(
            graph=graph,
            source=summary.source,
            device=str(self._opened.device),
            notes=tuple(note.text for note in summary.notes),
        )
        verifier = ToolVerifier(self._opened.bench, graph, self._record)
        workflow = Workflow(
            self._record, brief, workspace, BuiltinPlanner(), BuiltinCoder(), verifier, self._settings
        )
        return await workflow.run()

    def _announce(self) -> None:
        device = self._opened.device
        self._record.emit(
            events.SessionStarted(
                reference=self._opened.summary.path,
                device=str(device),
                device_reason=device.reason if isinstance(device, EmulatorDevice) else "",
                branch=self._started.branch,
                base=self._started.origin.base,
                roles={"planner": "builtin", "coder": "builtin", "verifier": "builtin"},
            )
        )
        if self._started.notice:
            self._record.emit(events.Warned(text=self._started.notice))

    async def _profile(self) -> Graph:
        """The graph with the measured time of each node."""
        opened, judge = self._opened, self._opened.judge
        variants = await references.variants(judge)
        graph = await references.measured(judge, opened.exported.graph, budget_s=MEASURE_SECONDS)
        opaque = opened.exported.opaque
        timed = sorted(graph.nodes, key=lambda node: -(node.time_us or 0.0))
        self._record.emit(
            events.ReferenceProfiled(
                sha256=opened.summary.sha256,
                nodes=len(graph.nodes),
                time_us=sum(node.time_us or 0.0 for node in graph.nodes),
                opaque=f"{opaque.why} ({opaque.where})" if opaque else "",
                variants=tuple(variant.name for variant in variants.variants),
                notes=(*(note.text for note in opened.summary.notes), *variants.notes),
                hottest=tuple(
                    {"node": n.id, "op": n.op, "time_us": n.time_us, "module": n.module} for n in timed[:5]
                ),
            )
        )
        return graph

    def _end(self, code: ExitCode, reason: str) -> ExitCode:
        best = ""
        with contextlib.suppress(StitchError):  # the first error is the one to report
            last = self._history.seal(self._name)
            best = last.sha if last else ""
        self._record.emit(
            events.SessionFinished(status=goal.status(code), exit_code=code, reason=reason, best=best)
        )
        return code


def _require_supported(settings: Settings) -> None:
    """Refuse what this version cannot do, instead of doing something else.

    Raises:
        UsageError: a role asks for a model.
    """
    for name in ("planner", "coder", "verifier"):
        role: RoleSettings = getattr(settings.models, name)
        if role.provider != "builtin":
            raise UsageError(
                "this version has built-in roles only",
                where=f"models.{name}.provider",
                advice='set it to "builtin"',
            )


def _require_reachable(settings: Settings, opened: OpenBench) -> None:
    """A speedup cannot be measured on the emulator.

    Raises:
        EnvironmentFault: the goal is a speedup and there is no GPU.
    """
    if settings.goal.speedup and isinstance(opened.device, EmulatorDevice):
        raise EnvironmentFault(
            "a speedup cannot be measured on the emulator",
            where="goal.speedup",
            why=opened.device.reason,
            advice="set it to 0 for a functional goal, or use a machine with a GPU",
        )
