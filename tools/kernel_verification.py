"""The verification of one ``.cu``: on the emulator first, then where it is to be fast."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from stitch_tui.tools import launches
from stitch_tui.tools.baselines import compiling
from stitch_tui.tools.bench import BUILD_SECONDS, Json
from stitch_tui.tools.decorative import emptied, uses_library
from stitch_tui.tools.emulator import Mode
from stitch_tui.tools.errors import EnvironmentFault
from stitch_tui.tools.hollow import is_still_right
from stitch_tui.tools.new_best import last_word, looked_into
from stitch_tui.tools.profiling.candidate import profiled
from stitch_tui.tools.screen import screen_source
from stitch_tui.tools.verdict import Build, Category, Finding, Verdict
from stitch_tui.tools.verifying import Verification

EMULATED_SECONDS = 5.0
"""For one call on the emulator where a GPU judges afterwards."""
SHUFFLED = 3
"""Seed of the thread order in the emulator's second run; the first goes upward."""
WATCHED: Json = {"full": 0, "distributions": False, "metamorphic": False}
"""Trials for the instrumented emulator, which is slow: the task's own inputs on every small shape."""


@dataclass
class KernelVerification(Verification):
    """Of a kernel for a region; on a GPU one that becomes the best is looked into."""

    becomes_best: Callable[[Verdict], bool] | None = None
    upcoming: Json | None = None
    """The target that is judged next."""

    async def of_kernel(self, source: Path) -> Verdict:
        self._name_by(source)
        try:
            self._stage("screen")
            if self._passes(screen_source(source.read_text(encoding="utf-8", errors="replace"), source.name)):
                await (self._on_gpu(source) if self.bench.cuda else self._emulated(source))
        except EnvironmentFault as fault:
            return self.draft.ended(Category.ENVIRONMENT, str(fault))
        return self.draft.concluded()

    @property
    def _timed_targets(self) -> list[Json]:
        own = super()._timed_targets
        return [*own, self.upcoming] if own and self.upcoming else own

    async def _on_gpu(self, source: Path) -> None:
        async with compiling(self.bench, self._timed_targets, self.on_event):
            build = await self._passed_on_gpu(source)
        if build is not None:
            await self._time(launches.on_gpu(self.bench, build))
            about = (self.bench, self.target, source, build)
            if self._is_new_best:
                await last_word(self.draft, *about, self._event)
            if self._is_new_best:
                seconds = self.draft.run_seconds
                profiling = partial(profiled, *about, seconds=seconds, on_event=self.on_event)
                await looked_into(self.draft, self.bench, profiling, self._event)

    @property
    def _is_new_best(self) -> bool:
        """As far as is known: compute-sanitizer may still object."""
        verdict = self.draft.verdict
        return verdict.correct and self.becomes_best is not None and self.becomes_best(verdict)

    async def _passed_on_gpu(self, source: Path) -> Build | None:
        """A correct candidate's library; None for one that is not.  The baselines are warm afterwards."""
        assert self.bench.cuda
        self._stage("build")
        build_task = asyncio.create_task(self.bench.cuda.build(source))
        try:
            passed = await self._emulator_stage(source)
            build = await build_task
        finally:
            build_task.cancel()
        if not self._built(build) or not passed:
            return None
        runner = launches.on_gpu(self.bench, build)
        if not await self._check("correctness", runner, {}, None) or not await self._earned(source, runner):
            return None
        await self._baselines_ready()
        return build

    async def _emulator_stage(self, source: Path) -> bool:
        """Races, bounds and initialisation on small shapes, while nvcc builds and before the GPU runs it.

        What it finds is the verdict, unless nvcc finds more: a candidate must compile first of all.
        """
        emulator = self.bench.emulator
        if emulator is None:
            self.draft.unchecked("races and bounds on the emulator: no host compiler")
            return True
        build = await emulator.build(source, Mode.CHECK, timeout=BUILD_SECONDS)
        if not build.ok:
            reason = build.diagnostics[0].message if build.diagnostics else "it does not build there"
            self.draft.unchecked(f"races and bounds on the emulator: {reason}")
            return True
        self._stage("emulator")
        runner = launches.emulated(emulator, build, order=0, deadline_s=EMULATED_SECONDS)
        return await self._check("emulator", runner, WATCHED | {"smallest": 2}, build)

    async def _emulated(self, source: Path) -> None:
        emulator = self._require_emulator()
        self._stage("build")
        watched, fast = await emulator.builds(source, timeout=BUILD_SECONDS)
        if not self._built(watched) or not self._built(fast):
            return
        deadline_s = self.bench.deadline_s
        runner = launches.emulated(emulator, watched, order=0, deadline_s=deadline_s)
        if await self._check("emulator", runner, WATCHED, watched):
            runner = launches.emulated(emulator, fast, order=SHUFFLED, deadline_s=deadline_s)
            if await self._check("correctness", runner, self._affordable({}), fast):
                await self._earned(source, runner)

    async def _earned(self, source: Path, runner: Json) -> bool:
        """Does the result come from its kernels?  Asked only where it could come from elsewhere."""
        text = source.read_text(encoding="utf-8", errors="replace")
        hollow = emptied(text)
        if hollow is None:
            return True
        self._stage("kernels emptied")
        right = await is_still_right(self.bench, self.target, source.name, hollow, runner)
        if right is None:
            self.draft.unchecked("kernels emptied: that source does not build")
        if not right:
            return True
        if uses_library(text):
            words = "the result comes from library calls: its own kernels change nothing"
            self.draft.note({"decorative": words})
            return True
        message = "decorative kernels: with every kernel emptied the result is still right"
        self.draft.fail(Category.HACK_SUSPECTED, [Finding(category=Category.HACK_SUSPECTED, message=message)])
        return False
