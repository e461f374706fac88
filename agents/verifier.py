"""The Verifier: judges candidates with the tools and reports each stage as an event."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from stitch_tui.agents import events
from stitch_tui.agents.bench import Workbench
from stitch_tui.agents.gates import Gates
from stitch_tui.agents.record import Record
from stitch_tui.agents.route import outcome, twin
from stitch_tui.agents.state import Subtask, SubtaskState
from stitch_tui.tools.bench import Bench, OnEvent, target_of
from stitch_tui.tools.bundle import read_bundle
from stitch_tui.tools.errors import DeviceLost, EnvironmentFault, JudgeKilled
from stitch_tui.tools.graph import Graph, region_of
from stitch_tui.tools.iteration import Outcome
from stitch_tui.tools.race import Race
from stitch_tui.tools.racing import raced
from stitch_tui.tools.verdict import Category, Verdict
from stitch_tui.tools.verification import verify_program, verify_region

_STATES = {
    "screen": SubtaskState.BUILDING,
    "build": SubtaskState.BUILDING,
    "emulator": SubtaskState.CHECKING,
    "correctness": SubtaskState.CHECKING,
    "timing": SubtaskState.MEASURING,
    "sanitizer": SubtaskState.CHECKING,
    "profile": SubtaskState.MEASURING,
}


class ToolVerifier:
    """Verdicts from `tools.verification`, without any model."""

    def __init__(self, workbench: Workbench, graph: Graph, record: Record, gates: Gates) -> None:
        self._workbench, self._graph, self._record, self._gates = workbench, graph, record, gates

    async def verify(self, iteration: int, subtask: Subtask, source: Path) -> Verdict:
        """Judge one candidate against the subtask's nodes.

        Raises:
            EnvironmentFault: this machine, not the candidate, is at fault.
            Overtaken: a human turned the step back before its next build or launch.
        """

        def staged(stage: str) -> None:
            self._enter(subtask.id, self._passed(stage))

        flops = sum(self._graph.node[name].flops for name in subtask.region.nodes)
        opened = await self._workbench.opened()
        best = self._record.session.best_of(subtask)
        verdict = await self._judged(
            lambda bench: verify_region(
                bench,
                source,
                subtask.region,
                flops=flops,
                bound_us=opened.least_us(subtask.region),
                becomes_best=lambda found: outcome(found, best) is Outcome.KEPT,
                upcoming=self._upcoming(subtask),
                on_event=self._hearing(staged),
            )
        )
        return self._reported(iteration, subtask.id, verdict)

    async def race(self, subtask: Subtask, sources: Mapping[str, str], seconds: float) -> Race:
        """Time candidates beside each other.  A judge that is lost meanwhile is replaced for what comes next.

        Raises:
            StitchError: this machine or the judge is at fault, as for `verify`.
            Overtaken: as for `verify`.
        """

        def staged(stage: str) -> None:
            self._enter(subtask.id, self._passed(stage))

        bench, hearing = (await self._workbench.opened()).bench, self._hearing(staged)
        return await raced(bench, sources, subtask.region, seconds=seconds, on_event=hearing)

    def _upcoming(self, subtask: Subtask) -> dict[str, Any] | None:
        """What is judged after a subtask; None at its first attempt, whose own baselines have to compile."""
        session = self._record.session
        if len(session.attempts_of(subtask.id)) < 2:
            return None
        position = [other.id for other in session.kernels].index(subtask.id)
        later = (s for s in session.kernels[position + 1 :] if not s.state.ended and not s.attempts)
        following = next((s for s in later if twin(session, s, self._graph) is None), None)
        return {"kind": "program"} if following is None else target_of(following.region)

    async def verify_program(self, iteration: int, bundle: Path, *, replaces: Path | None = None) -> Verdict:
        """Judge the program in a bundle's folder; errors as for `verify`."""
        subtask = self._record.session.iteration(iteration).subtask

        def staged(stage: str) -> None:
            state = self._passed(stage)
            if subtask:
                self._enter(subtask, state)

        kernels = {k.file: bundle / "kernels" / k.file for k in read_bundle(bundle).kernels if k.source}

        flops = sum(node.flops for node in self._graph.nodes)
        opened = await self._workbench.opened()
        verdict = await self._judged(
            lambda bench: verify_program(
                bench,
                bundle / "model_new.py",
                kernels,
                flops=flops,
                bound_us=opened.least_us(region_of(self._graph, self._graph.node)),
                traced_as=opened.options,
                replaces=replaces and replaces / "model_new.py",
                on_event=self._hearing(staged),
            )
        )
        return self._reported(iteration, subtask, verdict)

    async def _judged(self, judge: Callable[[Bench], Awaitable[Verdict]]) -> Verdict:
        """What `judge` finds; a judge that lost the GPU or was killed is replaced, once."""
        try:
            return await judge((await self._workbench.opened()).bench)
        except (DeviceLost, JudgeKilled) as lost:
            self._record.emit(events.Warned(text=f"{lost}; another judge does this again"))
            return await judge((await self._workbench.opened()).bench)

    def _hearing(self, staged: Callable[[str], object]) -> OnEvent:
        """Hears a verification: `staged` what changes a state; a wait for the GPU is journalled."""

        def heard(event: str, data: dict[str, Any]) -> None:
            if event == "stage" and data["stage"] in _STATES:
                staged(data["stage"])
            elif event == "waiting":
                self._record.emit(events.Warned(text=f"waiting for the GPU: {data['holder']}"))

        return heard

    def _passed(self, stage: str) -> SubtaskState:
        """The state that `stage` is, once the gates let it begin."""
        state = _STATES[stage]
        self._gates.check("build" if state is SubtaskState.BUILDING else "run")
        return state

    def _enter(self, subtask: str, state: SubtaskState) -> None:
        if self._record.session.subtask(subtask).state is not state:
            self._record.emit(events.SubtaskUpdated(subtask=subtask, state=state))

    def _reported(self, iteration: int, subtask: str, verdict: Verdict) -> Verdict:
        if verdict.category is Category.ENVIRONMENT:
            raise EnvironmentFault("the Verifier could not do its work", why=verdict.summary)
        about: dict[str, Any] = {"iteration": iteration, "subtask": subtask}
        if verdict.build is not None:
            self._record.emit(events.BuildFinished(**about, build=verdict.build))
        if verdict.trials:
            self._record.emit(events.CheckFinished(**about, trials=verdict.trials, findings=verdict.findings))
        if verdict.timing is not None:
            self._record.emit(events.TimingFinished(**about, timing=verdict.timing))
        if verdict.profile is not None:
            self._record.emit(events.Profiled(**about, profile=verdict.profile))
        return verdict
