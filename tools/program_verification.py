"""The verification of a whole program: a Python file with ``ModelNew``, end to end."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from stitch_tui.tools import launches, scratch
from stitch_tui.tools.baselines import compiling
from stitch_tui.tools.bench import BUILD_SECONDS, Json
from stitch_tui.tools.bundle.emulation import emulated
from stitch_tui.tools.bundle.module_text import without_loader
from stitch_tui.tools.errors import EnvironmentFault
from stitch_tui.tools.left_out import is_right_without
from stitch_tui.tools.new_best import looked_into
from stitch_tui.tools.profiling.candidate import profiled_program
from stitch_tui.tools.python_screen import screen_module
from stitch_tui.tools.timing import REPLACED
from stitch_tui.tools.verdict import Category, Finding, Verdict
from stitch_tui.tools.verifying import Verification


@dataclass
class ProgramVerification(Verification):
    """Of a module for the reference."""

    traced_as: Json | None = None
    replaces: Path | None = None

    async def of_module(self, module: Path, kernels: Mapping[str, Path], small_shapes: bool) -> Verdict:
        self._name_by(module, *kernels.values())
        try:
            self._stage("screen")
            text = without_loader(module.read_text(encoding="utf-8", errors="replace"))
            if self._passes(screen_module(text, module.name)):
                with scratch.folder("stitch-kernels-") as folder:
                    await self._module(module, kernels, small_shapes, folder)
        except EnvironmentFault as fault:
            return self.draft.ended(Category.ENVIRONMENT, str(fault))
        return self.draft.concluded()

    async def _module(
        self, module: Path, kernels: Mapping[str, Path], small_shapes: bool, folder: Path
    ) -> None:
        environment = {} if self.bench.cuda else await self._emulated_kernels(kernels, folder)
        if environment is None:
            return
        cache = folder / "cache"
        runner = launches.module(self.bench, module, environment, cache)
        trials = self._affordable({} if small_shapes else {"small": []})
        async with compiling(self.bench, self._timed_targets, self.on_event):
            passed = await self._check("correctness", runner, trials, None)
            passed = passed and await self._needs_its_kernels(module, kernels, cache)
            if passed:
                await self._baselines_ready()
        if passed:
            await self._time(runner, self._rivals(folder))
        if self.traced_as is not None and self.bench.cuda and self.draft.verdict.correct:
            seconds = self.draft.run_seconds
            profiling = partial(profiled_program, self.bench, self.traced_as, module, seconds)
            await looked_into(self.draft, self.bench, profiling, self._event)

    def _rivals(self, folder: Path) -> dict[str, Json]:
        """The program before this one, as a contestant with a cache of its own."""
        if self.replaces is None:
            return {}
        return {REPLACED: launches.module(self.bench, self.replaces, {}, folder / "replaced-cache")}

    async def _needs_its_kernels(self, module: Path, kernels: Mapping[str, Path], cache: Path) -> bool:
        """Does each kernel of a program that replaces another matter to its result?"""
        if self.replaces is None:
            return True
        self._stage("kernels left out")
        if not self._affordable({}).get("full", 1):
            self.draft.unchecked("kernels left out: not run at full size on this device")
            return True
        for name in kernels:
            if await is_right_without(self.bench, self.target, module, kernels, name, cache):
                message = f"the result does not come from {name}: without that kernel it is still right"
                finding = Finding(category=Category.HACK_SUSPECTED, message=message, file=module.name)
                self.draft.fail(Category.HACK_SUSPECTED, [finding])
                return False
        return True

    async def _emulated_kernels(self, kernels: Mapping[str, Path], folder: Path) -> dict[str, str] | None:
        """The environment that lets a bundle call its kernels on the emulator; None: one does not build."""
        if not kernels:
            return {}
        emulator = self._require_emulator()
        self._stage("build")
        ready = await emulated(kernels, emulator, folder, timeout=BUILD_SECONDS)
        return ready.environment if all(map(self._built, ready.builds)) else None
