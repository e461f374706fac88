"""The Verifier's work on one candidate, cheapest first, ending at the first failure (``VERIFY.md``).

::

    bench = Bench(judge, Emulator(cache))                      # no GPU: functional verdicts
    bench = Bench(judge, Emulator(cache), cuda=Cuda(...))      # a GPU: timed ones
    verdict = await verify_region(bench, Path("gelu.cu"), region, flops=2e6)
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from stitch_tui.tools import launches, scratch
from stitch_tui.tools.addressed import presentable
from stitch_tui.tools.bench import BUILD_SECONDS, CHECK_SECONDS, Bench, Cuda, Json, OnEvent
from stitch_tui.tools.build_cache import key_of
from stitch_tui.tools.bundle.emulation import emulated
from stitch_tui.tools.bundle.module_text import without_loader
from stitch_tui.tools.decorative import emptied, uses_library
from stitch_tui.tools.draft import Draft
from stitch_tui.tools.emulator import Emulator, Mode
from stitch_tui.tools.errors import EnvironmentFault
from stitch_tui.tools.graph import Region
from stitch_tui.tools.hangs import Hangs
from stitch_tui.tools.hollow import is_still_right
from stitch_tui.tools.killed import unless_killed
from stitch_tui.tools.new_best import last_word, looked_into
from stitch_tui.tools.profiling.candidate import profiled, profiled_program
from stitch_tui.tools.python_screen import screen_module
from stitch_tui.tools.screen import screen_source
from stitch_tui.tools.slowness import is_merely_slow
from stitch_tui.tools.summary import distinct
from stitch_tui.tools.timed import timed
from stitch_tui.tools.timing import timing_of
from stitch_tui.tools.verdict import Build, Category, Finding, Flag, Trial, Verdict

__all__ = ["Bench", "Cuda", "verify_program", "verify_region"]

EMULATED_FLOPS = 4e9
"""A region with more than this is not run at full size on the emulator (about 0.4 GFLOP/s)."""
BELIEVED = 0.9
"""Share of the speed of light below which a time is not believed."""
EMULATED_SECONDS = 5.0
"""For one call on the emulator where a GPU judges afterwards."""
SHUFFLED = 3
"""Seed of the thread order in the emulator's second run; the first goes upward."""
WATCHED: Json = {"full": 0, "distributions": False, "metamorphic": False}
"""Trials for the instrumented emulator, which is slow: the task's own inputs on every small shape."""


async def verify_region(
    bench: Bench,
    source: Path,
    region: Region,
    *,
    flops: float = 0.0,
    bound_us: float | None = None,
    time_it: bool = True,
    becomes_best: Callable[[Verdict], bool] | None = None,
    on_event: OnEvent | None = None,
) -> Verdict:
    """Judge one ``.cu`` against the same nodes of the reference.

    Args:
        flops: of the region at full size; decides whether the emulator can run it there.
        bound_us: the speed of light for the region; a time below `BELIEVED` of it is quarantined.
        time_it: measure a correct candidate where there is a GPU.
        becomes_best: asked of a correct and timed verdict; if so, compute-sanitizer has the last word, and
            what it accepts is profiled.
        on_event: ``(event, data)``: ``stage``, ``trial`` after each comparison, ``waiting`` for the GPU.  A
            stage that is announced again begins anew, and its trials with it.

    Raises:
        StitchError: the reference or the judge is at fault, never the candidate.
    """
    target = {"kind": "region", "region": region.model_dump(mode="json")}
    verification = _Verification(bench, target, flops, bound_us, time_it, on_event, becomes_best)
    return await verification.of_kernel(source)


async def verify_program(
    bench: Bench,
    module: Path,
    kernels: Mapping[str, Path] | None = None,
    *,
    flops: float = 0.0,
    bound_us: float | None = None,
    small_shapes: bool = False,
    time_it: bool = True,
    traced_as: Json | None = None,
    on_event: OnEvent | None = None,
) -> Verdict:
    """Judge a whole program, a Python file with ``ModelNew``, end to end.

    Args:
        module: ``stitched/model_new.py``, or any module in KernelBench's form.
        kernels: the bundle's ``.cu`` files by file name; built for the emulator where there is no GPU.
        small_shapes: try the reference's small shapes too; a bundle is made for one shape.
        traced_as: how its reference is opened; a correct program is then profiled.
    """
    verification = _Verification(bench, {"kind": "program"}, flops, bound_us, time_it, on_event)
    verification.traced_as = traced_as
    return await verification.of_module(module, kernels or {}, small_shapes)


@dataclass
class _Verification:
    bench: Bench
    target: Json
    flops: float
    bound_us: float | None
    time_it: bool
    on_event: OnEvent | None
    becomes_best: Callable[[Verdict], bool] | None = None
    traced_as: Json | None = None
    draft: Draft = field(init=False)
    launched: str = field(init=False, default="")
    """Names the candidate by its sources and builds."""

    def __post_init__(self) -> None:
        self.draft = Draft(self.bench.device, functional=self.bench.cuda is None)

    async def of_kernel(self, source: Path) -> Verdict:
        self._name_by(source)
        try:
            if self._screened(source):
                await (self._on_gpu(source) if self.bench.cuda else self._emulated(source))
        except EnvironmentFault as fault:
            return self.draft.ended(Category.ENVIRONMENT, str(fault))
        return self.draft.concluded()

    async def of_module(self, module: Path, kernels: Mapping[str, Path], small_shapes: bool) -> Verdict:
        self._name_by(module, *kernels.values())
        try:
            if self._screened(module):
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
        runner = launches.module(self.bench, module, environment)
        trials = self._affordable({} if small_shapes else {"small": []})
        async with self.bench.gpu("checking", on_event=self.on_event):
            await self._warm_baselines()
            passed = await self._check("correctness", runner, trials, None)
            await self._warm_baselines(wait=passed)
        if passed:
            await self._time(runner)
        if self.traced_as is not None and self.bench.cuda and self.draft.verdict.correct:
            seconds = self.draft.run_seconds
            profiling = partial(profiled_program, self.bench, self.traced_as, module, seconds)
            await looked_into(self.draft, self.bench, profiling, self._event)

    async def _on_gpu(self, source: Path) -> None:
        async with self.bench.gpu("checking", on_event=self.on_event):
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
        await self._warm_baselines()
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
        await self._warm_baselines(wait=True)
        return build

    async def _warm_baselines(self, *, wait: bool = False) -> None:
        """Let the baselines compile while the candidate is built and checked; with `wait`, until they have.

        They use the GPU meanwhile, so no lease is given up before.
        """
        if self.bench.cuda is None or not self.time_it:
            return
        params = {"target": self.target, "options": dict(self.bench.cuda.timing), "wait": wait}
        await self.bench.judge.call("warm", params, timeout=CHECK_SECONDS)

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

    def _require_emulator(self) -> Emulator:
        if self.bench.emulator is None:
            raise EnvironmentFault("there is neither a GPU nor a C++ compiler", advice="install g++")
        return self.bench.emulator

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

    async def _emulated_kernels(self, kernels: Mapping[str, Path], folder: Path) -> dict[str, str] | None:
        """The environment that lets a bundle call its kernels on the emulator; None: one does not build."""
        if not kernels:
            return {}
        emulator = self._require_emulator()
        self._stage("build")
        ready = await emulated(kernels, emulator, folder, timeout=BUILD_SECONDS)
        return ready.environment if all(map(self._built, ready.builds)) else None

    def _affordable(self, trials: Json) -> Json:
        """`trials` without the full size where the emulator would take minutes for it."""
        if self.bench.cuda is None and self.flops > EMULATED_FLOPS:
            return trials | {"full": 0}
        return trials

    def _name_by(self, *files: Path) -> None:
        self.launched = key_of(self.bench.device, *(path.read_bytes() for path in files))

    def _screened(self, source: Path) -> bool:
        self._stage("screen")
        text = source.read_text(encoding="utf-8", errors="replace")
        if source.suffix == ".py":
            screen = screen_module(without_loader(text), source.name)
        else:
            screen = screen_source(text, source.name)
        self.draft.note({"questions": list(screen.questions)} if screen.questions else {})
        if screen.evidence:
            self.draft.fail(Category.HACK_SUSPECTED, screen.evidence)
        return not screen.evidence

    def _built(self, build: Build) -> bool:
        self.draft.update(build=build)
        self.launched = key_of(self.launched, build.key)
        if build.ok:
            return True
        category = build.diagnostics[0].category if build.diagnostics else Category.BUILD_ERROR
        self.draft.fail(category, build.diagnostics)
        return False

    async def _check(self, stage: str, runner: Json, trials: Json, build: Build | None) -> bool:
        """One call of the judge's ``check``, taken into the verdict; True when the candidate passed."""
        self._stage(stage)
        told = json.dumps([self.target, trials])
        hangs, key = Hangs(), key_of(self.launched, stage, self.bench.shapes, told)
        if hung := hangs.recall(key, runner["deadline_s"]):
            self.draft.fail(Category.HANG, [Finding(category=Category.HANG, message=hung)])
            return False
        params = {"target": self.target, "runner": runner, "trials": trials}
        report = await unless_killed(
            lambda: self.bench.judge.call("check", params, timeout=CHECK_SECONDS, on_event=self.on_event),
            lambda: self._stage(stage),
        )
        findings = [Finding.model_validate(finding) for finding in report["findings"]]
        located = await self._located(build, report["raw"])
        category = Category(report["category"])
        severe = [finding for finding in located if finding.detail.get("severity") == "error"]
        if category is not Category.CORRECT and severe:
            # The emulator knows the line and the kind; the judge only saw that the call failed.
            category, findings = severe[0].category, []
        last = stage == "correctness"
        prefix = "" if last else f"{stage}: "
        self.draft.add_trials(
            [Trial.model_validate(t | {"name": prefix + t["name"]}) for t in report["trials"]]
        )
        self.draft.unchecked(*(report["unchecked"] if last else ()))
        self.draft.protected(report["protections"])
        self.draft.note(report["numbers"] if last else {})
        self.draft.note({"notes": report["notes"]} if report["notes"] else {})
        self.draft.note({"output": presentable(report["output"])} if report["output"] else {})
        if category is Category.HANG and self._too_slow_here(stage, report, runner["deadline_s"]):
            self.draft.unchecked(f"{stage}: the emulator needs longer than {runner['deadline_s']:g} s")
            return True
        if category is Category.HANG:
            hangs.remember(key, report["findings"][0]["where"], runner["deadline_s"])
        if category is not Category.CORRECT:
            self.draft.fail(category, (*findings, *located))
            return False
        if not report["trials"]:
            self.draft.unchecked(f"{stage}: the reference has no shape that could be tried")
        self.draft.add_trials((), located)
        return True

    def _too_slow_here(self, stage: str, report: Json, deadline_s: float) -> bool:
        """Did the emulator merely run out of time: ahead of a GPU, or at full size, watched or last?"""
        if self.bench.cuda is not None:
            return stage == "emulator"
        where = report["findings"][0]["where"] if report["findings"] else ""
        if not where.startswith("task/full") or not (stage == "emulator" or report["trials"]):
            return False
        return is_merely_slow(report["numbers"], self.flops, deadline_s, stage)

    async def _located(self, build: Build | None, raw: list[Json]) -> list[Finding]:
        if not raw or build is None or self.bench.emulator is None:
            return []
        return distinct(await self.bench.emulator.locate(build, raw))

    async def _time(self, runner: Json) -> None:
        if self.bench.cuda is None or not self.time_it:
            return
        params = {"target": self.target, "runner": runner, "options": dict(self.bench.cuda.timing)}
        report, observed = await timed(self.bench, params, timeout=CHECK_SECONDS, on_event=self.on_event)
        if report["category"] != Category.CORRECT:
            findings = [Finding.model_validate(finding) for finding in report["findings"]]
            self.draft.fail(Category(report["category"]), findings)
            return
        timing = timing_of(report, observed)
        self.draft.update(timing=timing)
        if self.bound_us:
            share = self.bound_us / timing.candidate.median_us
            self.draft.note({"bound_us": self.bound_us, "roofline": round(share, 4)})
            if share * BELIEVED > 1:
                self.draft.flag(Flag.QUARANTINED)
        self.draft.unchecked(*report["unchecked"])

    def _event(self, event: str, data: Json) -> None:
        if self.on_event:
            self.on_event(event, data)

    def _stage(self, name: str) -> None:
        self._event("stage", {"stage": name})
