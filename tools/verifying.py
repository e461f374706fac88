"""What the verifications of a kernel and of a program have in common: screen, build, checks, timing.

Each stage adds to one draft; the first failure gives the verdict its category.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stitch_tui.tools.addressed import presentable
from stitch_tui.tools.baselines import warm
from stitch_tui.tools.bench import CHECK_SECONDS, Bench, Json, OnEvent
from stitch_tui.tools.build_cache import key_of
from stitch_tui.tools.draft import Draft
from stitch_tui.tools.emulator import Emulator
from stitch_tui.tools.errors import EnvironmentFault
from stitch_tui.tools.hangs import Hangs
from stitch_tui.tools.killed import unless_killed
from stitch_tui.tools.screen import Screen
from stitch_tui.tools.slowness import is_merely_slow
from stitch_tui.tools.summary import distinct
from stitch_tui.tools.timed import timed
from stitch_tui.tools.timing import timing_of
from stitch_tui.tools.verdict import Build, Category, Finding, Flag, Trial

EMULATED_FLOPS = 4e9
"""A region with more than this is not run at full size on the emulator (about 0.4 GFLOP/s)."""
BELIEVED = 0.9
"""Share of the speed of light below which a time is not believed."""


@dataclass
class Verification:
    """One candidate's, of the parts that its kind puts together."""

    bench: Bench
    target: Json
    flops: float
    bound_us: float | None
    time_it: bool
    on_event: OnEvent | None
    draft: Draft = field(init=False)
    launched: str = field(init=False, default="")
    """Names the candidate by its sources and builds."""

    def __post_init__(self) -> None:
        self.draft = Draft(self.bench.device, functional=self.bench.cuda is None)

    @property
    def _timed_targets(self) -> list[Json]:
        """What will be timed, this one first."""
        return [self.target] if self.bench.cuda and self.time_it else []

    async def _baselines_ready(self) -> None:
        if self._timed_targets:
            await warm(self.bench, self.target, wait=True, on_event=self._event)

    def _require_emulator(self) -> Emulator:
        if self.bench.emulator is None:
            raise EnvironmentFault("there is neither a GPU nor a C++ compiler", advice="install g++")
        return self.bench.emulator

    def _affordable(self, trials: Json) -> Json:
        """`trials` without the full size where the emulator would take minutes for it."""
        if self.bench.cuda is None and self.flops > EMULATED_FLOPS:
            return trials | {"full": 0}
        return trials

    def _name_by(self, *files: Path) -> None:
        self.launched = key_of(self.bench.device, *(path.read_bytes() for path in files))

    def _passes(self, screen: Screen) -> bool:
        """Take in what the text alone shows; True when it shows no hack."""
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
            lambda: self.bench.judge.call("check", params, timeout=CHECK_SECONDS, on_event=self._event),
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

    async def _time(self, runner: Json, rivals: Mapping[str, Json] | None = None) -> None:
        if self.bench.cuda is None or not self.time_it:
            return
        params = {"target": self.target, "runner": runner, "rivals": dict(rivals or {})}
        report, observed = await timed(self.bench, params, timeout=CHECK_SECONDS, on_event=self._event)
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
        if event == "stage":
            self.draft.stage(data["stage"])
        if self.on_event:
            self.on_event(event, data)

    def _stage(self, name: str) -> None:
        self._event("stage", {"stage": name})
