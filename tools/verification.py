"""The Verifier's work on one candidate, cheapest first, ending at the first failure (``VERIFY.md``).

::

    bench = Bench(judge, Emulator(cache))                      # no GPU: functional verdicts
    bench = Bench(judge, Emulator(cache), cuda=Cuda(...))      # a GPU: timed ones
    verdict = await verify_region(bench, Path("gelu.cu"), region, flops=2e6)
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stitch_tui.tools.addressed import presentable
from stitch_tui.tools.bench import Bench, Cuda, Json, OnEvent
from stitch_tui.tools.build import build_cuda
from stitch_tui.tools.build_cache import key_of
from stitch_tui.tools.bundle.emulation import emulated
from stitch_tui.tools.bundle.module_text import without_loader
from stitch_tui.tools.decorative import emptied, uses_library
from stitch_tui.tools.emulator import Emulator, Mode
from stitch_tui.tools.errors import EnvironmentFault
from stitch_tui.tools.graph import Region
from stitch_tui.tools.hangs import Hangs
from stitch_tui.tools.python_screen import screen_module
from stitch_tui.tools.runners import cuda_runner, emulator_runner, module_runner
from stitch_tui.tools.screen import screen_source
from stitch_tui.tools.summary import distinct, merged, nearness, summary
from stitch_tui.tools.timed import timed
from stitch_tui.tools.verdict import Build, Category, Finding, Flag, Timing, Trial, Verdict

__all__ = ["Bench", "Cuda", "verify_program", "verify_region"]

CHECK_SECONDS = 1800.0
"""For one call of the judge: the trials of one stage together."""
BUILD_SECONDS = 180.0
EMULATED_FLOPS = 4e9
"""A region with more than this is not run at full size on the emulator (about 0.4 GFLOP/s)."""
BELIEVED = 0.9
"""Share of the speed of light below which a time is not believed."""
EMULATED_SECONDS = 5.0
"""For one call on the emulator where a GPU judges afterwards."""
SHUFFLED = 3
"""Seed of the thread order in the emulator's second run; the first goes upward."""


async def verify_region(
    bench: Bench,
    source: Path,
    region: Region,
    *,
    flops: float = 0.0,
    bound_us: float | None = None,
    time_it: bool = True,
    on_event: OnEvent | None = None,
) -> Verdict:
    """Judge one ``.cu`` against the same nodes of the reference.

    Args:
        flops: of the region at full size; decides whether the emulator can run it there.
        bound_us: the speed of light for the region; a time below `BELIEVED` of it is quarantined.
        time_it: measure a correct candidate where there is a GPU.
        on_event: ``(event, data)``: ``stage``, and ``trial`` after each comparison.

    Raises:
        StitchError: the reference or the judge is at fault, never the candidate.
    """
    target = {"kind": "region", "region": region.model_dump(mode="json")}
    return await _Verification(bench, target, flops, bound_us, time_it, on_event).of_kernel(source)


async def verify_program(
    bench: Bench,
    module: Path,
    kernels: Mapping[str, Path] | None = None,
    *,
    flops: float = 0.0,
    bound_us: float | None = None,
    small_shapes: bool = False,
    time_it: bool = True,
    on_event: OnEvent | None = None,
) -> Verdict:
    """Judge a whole program, a Python file with ``ModelNew``, end to end.

    Args:
        module: ``stitched/model_new.py``, or any module in KernelBench's form.
        kernels: the bundle's ``.cu`` files by file name; built for the emulator where there is no GPU.
        small_shapes: try the reference's small shapes too; a bundle is made for one shape.
    """
    verification = _Verification(bench, {"kind": "program"}, flops, bound_us, time_it, on_event)
    return await verification.of_module(module, kernels or {}, small_shapes)


@dataclass
class _Verification:
    bench: Bench
    target: Json
    flops: float
    bound_us: float | None
    time_it: bool
    on_event: OnEvent | None
    draft: Verdict = field(init=False)
    started: float = field(init=False)
    launched: str = field(init=False, default="")
    """Names the candidate by its sources and builds."""

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        flags = () if self.bench.cuda else (Flag.FUNCTIONAL,)
        self.draft = Verdict(category=Category.CORRECT, flags=flags, device=self.bench.device, summary="")

    async def of_kernel(self, source: Path) -> Verdict:
        self._name_by(source)
        try:
            return await (self._on_gpu(source) if self.bench.cuda else self._emulated(source))
        except EnvironmentFault as fault:
            return self._ended(Category.ENVIRONMENT, str(fault))

    async def of_module(self, module: Path, kernels: Mapping[str, Path], small_shapes: bool) -> Verdict:
        self._name_by(module, *kernels.values())
        try:
            with tempfile.TemporaryDirectory(prefix="stitch-kernels-") as folder:
                await self._module(module, kernels, small_shapes, Path(folder))
        except EnvironmentFault as fault:
            return self._ended(Category.ENVIRONMENT, str(fault))
        return self._concluded()

    async def _module(
        self, module: Path, kernels: Mapping[str, Path], small_shapes: bool, folder: Path
    ) -> None:
        if not self._screened(module):
            return
        environment = {} if self.bench.cuda else await self._emulated_kernels(kernels, folder)
        if environment is None:
            return
        runner = module_runner(self.bench, module, environment)
        trials = self._affordable({} if small_shapes else {"small": []})
        async with self.bench.gpu("checking"):
            await self._warm_baselines()
            passed = await self._check("correctness", runner, trials, None)
            await self._warm_baselines(wait=passed)
        if passed:
            await self._time(runner)

    async def _on_gpu(self, source: Path) -> Verdict:
        cuda = self.bench.cuda
        assert cuda
        if not self._screened(source):
            return self._concluded()
        async with self.bench.gpu("checking"):
            runner = await self._passed_on_gpu(source, cuda)
        if runner is not None:
            await self._time(runner)
        return self._concluded()

    async def _passed_on_gpu(self, source: Path, cuda: Cuda) -> Json | None:
        """How a correct candidate is run; None for one that is not.  The baselines are warm afterwards."""
        await self._warm_baselines()
        self._stage("build")
        build_task = asyncio.create_task(
            build_cuda(source, arch=cuda.arch, toolkit=cuda.toolkit, cache=cuda.cache, timeout=BUILD_SECONDS)
        )
        try:
            passed = await self._emulator_stage(source)
            build = await build_task
        finally:
            build_task.cancel()
        if not self._built(build) or not passed:
            return None
        runner = cuda_runner(self.bench, build)
        if not await self._check("correctness", runner, {}, None) or not await self._earned(source, runner):
            return None
        await self._warm_baselines(wait=True)
        return runner

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
            self._unchecked("races and bounds on the emulator: no host compiler")
            return True
        build = await emulator.build(source, Mode.CHECK, timeout=BUILD_SECONDS)
        if not build.ok:
            reason = build.diagnostics[0].message if build.diagnostics else "it does not build there"
            self._unchecked(f"races and bounds on the emulator: {reason}")
            return True
        self._stage("emulator")
        runner = emulator_runner(self.bench, build, 0) | {"deadline_s": EMULATED_SECONDS}
        return await self._check("emulator", runner, _WATCHED | {"smallest": 2}, build)

    async def _emulated(self, source: Path) -> Verdict:
        emulator = self.bench.emulator
        if emulator is None:
            raise EnvironmentFault("there is neither a GPU nor a C++ compiler", advice="install g++")
        if not self._screened(source):
            return self._concluded()
        self._stage("build")
        watched, fast = await _both_builds(emulator, source)
        if not self._built(watched) or not self._built(fast):
            return self._concluded()
        if await self._check("emulator", emulator_runner(self.bench, watched, 0), _WATCHED, watched):
            runner = emulator_runner(self.bench, fast, SHUFFLED)
            if await self._check("correctness", runner, self._affordable({}), fast):
                await self._earned(source, runner)
        return self._concluded()

    async def _earned(self, source: Path, runner: Json) -> bool:
        """Does the result come from its kernels?  Asked only where it could come from elsewhere."""
        text = source.read_text(encoding="utf-8", errors="replace")
        hollow = emptied(text)
        if hollow is None:
            return True
        self._stage("kernels emptied")
        with tempfile.TemporaryDirectory(prefix="stitch-hollow-") as folder:
            path = Path(folder) / source.name
            path.write_text(hollow, encoding="utf-8")
            if self.bench.cuda:
                cuda = self.bench.cuda
                build = await build_cuda(
                    path, arch=cuda.arch, toolkit=cuda.toolkit, cache=cuda.cache, timeout=BUILD_SECONDS
                )
                runner = runner | {"load": build.artifact}
            else:
                assert self.bench.emulator
                build = await self.bench.emulator.build(path, Mode.FAST, timeout=BUILD_SECONDS)
                runner = emulator_runner(self.bench, build, 0)
            if not build.ok:
                self._unchecked("kernels emptied: that source does not build")
                return True
            params = {"target": self.target, "runner": runner, "trials": _HOLLOW}
            report = await self.bench.judge.call("check", params, timeout=CHECK_SECONDS)
        if report["category"] != Category.CORRECT or not report["trials"]:
            return True
        if uses_library(text):
            self._note({"decorative": "the result comes from library calls: its own kernels change nothing"})
            return True
        message = "decorative kernels: with every kernel emptied the result is still right"
        self._fail(Category.HACK_SUSPECTED, (Finding(category=Category.HACK_SUSPECTED, message=message),))
        return False

    async def _emulated_kernels(self, kernels: Mapping[str, Path], folder: Path) -> dict[str, str] | None:
        """The environment that lets a bundle call its kernels on the emulator; None: one does not build."""
        emulator = self.bench.emulator
        if not kernels:
            return {}
        if emulator is None:
            raise EnvironmentFault("there is neither a GPU nor a C++ compiler", advice="install g++")
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
        self._note({"questions": list(screen.questions)} if screen.questions else {})
        if screen.evidence:
            self._fail(Category.HACK_SUSPECTED, screen.evidence)
        return not screen.evidence

    def _built(self, build: Build) -> bool:
        self._update(build=build)
        self.launched = key_of(self.launched, build.key)
        if build.ok:
            return True
        category = build.diagnostics[0].category if build.diagnostics else Category.BUILD_ERROR
        self._fail(category, build.diagnostics)
        return False

    async def _check(self, stage: str, runner: Json, trials: Json, build: Build | None) -> bool:
        """One call of the judge's ``check``, taken into the verdict; True when the candidate passed."""
        self._stage(stage)
        hangs, key = (
            Hangs(),
            key_of(self.launched, stage, self.bench.shapes, json.dumps([self.target, trials])),
        )
        if hung := hangs.recall(key, runner["deadline_s"]):
            self._fail(Category.HANG, (Finding(category=Category.HANG, message=hung),))
            return False
        params = {"target": self.target, "runner": runner, "trials": trials}
        report = await self.bench.judge.call("check", params, timeout=CHECK_SECONDS, on_event=self.on_event)
        findings = [Finding.model_validate(finding) for finding in report["findings"]]
        located = await self._located(build, report["raw"])
        category = Category(report["category"])
        severe = [finding for finding in located if finding.detail.get("severity") == "error"]
        if category is not Category.CORRECT and severe:
            # The emulator knows the line and the kind; the judge only saw that the call failed.
            category, findings = severe[0].category, []
        prefix = "" if stage == "correctness" else f"{stage}: "
        self._update(
            trials=self.draft.trials
            + tuple(Trial.model_validate(t | {"name": prefix + t["name"]}) for t in report["trials"]),
            unchecked=merged(self.draft.unchecked, report["unchecked"] if stage == "correctness" else ()),
            protections=merged(self.draft.protections, report["protections"]),
        )
        self._note(report["numbers"] if stage == "correctness" else {})
        self._note({"notes": report["notes"]} if report["notes"] else {})
        self._note({"output": presentable(report["output"])} if report["output"] else {})
        if category is Category.HANG and self._too_slow_here(stage, report):
            self._unchecked(f"{stage}: the emulator needs longer than {runner['deadline_s']:g} s")
            return True
        if category is Category.HANG:
            hangs.remember(key, report["findings"][0]["where"], runner["deadline_s"])
        if category is not Category.CORRECT:
            self._fail(category, (*findings, *located))
            return False
        if not report["trials"]:
            self._unchecked(f"{stage}: the reference has no shape that could be tried")
        self._update(findings=self.draft.findings + tuple(located))
        return True

    def _too_slow_here(self, stage: str, report: Json) -> bool:
        """Did the emulator merely run out of time: ahead of a GPU, or at full size, watched or last?"""
        if self.bench.cuda is not None:
            return stage == "emulator"
        where = report["findings"][0]["where"] if report["findings"] else ""
        return where.startswith("task/full") and (stage == "emulator" or bool(report["trials"]))

    async def _located(self, build: Build | None, raw: list[Json]) -> list[Finding]:
        if not raw or build is None or self.bench.emulator is None:
            return []
        return distinct(await self.bench.emulator.locate(build, raw))

    async def _time(self, runner: Json) -> None:
        if self.bench.cuda is None or not self.time_it:
            return
        params = {"target": self.target, "runner": runner, "options": dict(self.bench.cuda.timing)}
        report = await timed(self.bench, params, timeout=CHECK_SECONDS, on_event=self.on_event)
        if report["category"] != Category.CORRECT:
            findings = tuple(Finding.model_validate(finding) for finding in report["findings"])
            self._fail(Category(report["category"]), findings)
            return
        timing = Timing.model_validate(report["timing"])
        self._update(timing=timing)
        if self.bound_us and timing.candidate.median_us < BELIEVED * self.bound_us:
            self._update(flags=(*self.draft.flags, Flag.QUARANTINED))
            self._note({"bound_us": self.bound_us})
        for reason in report["unchecked"]:
            self._unchecked(reason)

    def _stage(self, name: str) -> None:
        if self.on_event:
            self.on_event("stage", {"stage": name})

    def _update(self, **changes: Any) -> None:
        self.draft = self.draft.model_copy(update=changes)

    def _note(self, numbers: Mapping[str, Any]) -> None:
        self._update(numbers=self.draft.numbers | dict(numbers))

    def _unchecked(self, reason: str) -> None:
        self._update(unchecked=merged(self.draft.unchecked, (reason,)))

    def _fail(self, category: Category, findings: tuple[Finding, ...]) -> None:
        self._update(category=category, findings=findings)

    def _ended(self, category: Category, summary: str) -> Verdict:
        self._update(category=category, summary=summary)
        return self._concluded()

    def _concluded(self) -> Verdict:
        """The verdict, with its summary, nearest trial and flags."""
        draft = self.draft
        nearest = max(draft.trials, key=nearness, default=None)
        partial = (Flag.PARTIAL,) if draft.unchecked and draft.correct else ()
        return draft.model_copy(
            update={
                "summary": draft.summary or summary(draft),
                "error": nearest.error if nearest else None,
                "error_limit": nearest.limit if nearest else None,
                "flags": draft.flags + partial,
                "seconds": time.monotonic() - self.started,
            }
        )


_HOLLOW: Json = {"full": 0, "distributions": False, "metamorphic": False, "decorative": True}
"""Trials for a candidate whose kernels were emptied: one, which must fail."""
_WATCHED: Json = {"full": 0, "distributions": False, "metamorphic": False}
"""Trials for the instrumented emulator, which is slow: the task's own inputs on every small shape."""


async def _both_builds(emulator: Emulator, source: Path) -> list[Build]:
    """The watched build and the fast one, side by side; neither goes on after the other's fault."""
    modes = (Mode.CHECK, Mode.FAST)
    builds = [asyncio.create_task(emulator.build(source, mode, timeout=BUILD_SECONDS)) for mode in modes]
    try:
        return await asyncio.gather(*builds)
    finally:
        for build in builds:
            build.cancel()
        await asyncio.gather(*builds, return_exceptions=True)
