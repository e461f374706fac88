"""Are profiles what the profilers themselves say, and what do they cost?  Three examples.

``python benchmarks/profiles.py [NAME ...]`` needs an NVIDIA GPU, nvcc, nsys and ncu.  Of each example the
reference's passes and its costliest subtask, as the built-in Coder first writes it, are profiled as in a
session; beside the figures stand what ``nsys stats`` and ``ncu --print-summary`` make of the same reports,
what is left of them when neither tool is there, and how long a verdict takes with a profile and without.
Writes ``benchmarks/results/profiles.json`` after each part and ends with 1 when figures differ.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import provenance
import summaries
from parts import kept

from stitch_tui.agents.bench import OpenBench, open_bench
from stitch_tui.agents.builtin.coder import BuiltinCoder
from stitch_tui.agents.builtin.planner import plan
from stitch_tui.agents.settings import Settings
from stitch_tui.tools.bench import Bench, Json, target_of
from stitch_tui.tools.emulator import Mode
from stitch_tui.tools.graph import Region
from stitch_tui.tools.judge_start import BOOT
from stitch_tui.tools.profiling.candidate import profiled
from stitch_tui.tools.profiling.metrics import questions
from stitch_tui.tools.profiling.ncu import measure
from stitch_tui.tools.profiling.ncu_csv import base_name
from stitch_tui.tools.profiling.nsys import trace
from stitch_tui.tools.profiling.profile import KernelProfile, Profile, SystemProfile, Trace
from stitch_tui.tools.profiling.spans import Spans, system_of
from stitch_tui.tools.profiling.system import RUNS, of_reference
from stitch_tui.tools.scrub import reference_environment
from stitch_tui.tools.solo import solo
from stitch_tui.tools.verdict import Build, Verdict
from stitch_tui.tools.verification import verify_region

SECONDS = 300.0
"""For building, and for baselines to compile."""
EXAMPLES = ("gated_mlp", "layernorm_gelu", "small_cnn")
NEAR = 0.01
"""Relative difference of two readings of one report."""
TIME = "gpu__time_duration.sum"
ROUNDED = 0.006
"""Percent: ncu's summary has two decimals."""
SAME_KERNEL = 0.25
"""Of a kernel's time in two runs, one under nsys and one under CUPTI."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=EXAMPLES)
    return asyncio.run(run(parser.parse_args().names))


async def run(names: list[str]) -> int:
    rows: dict[str, Json] = {name: {"example": name, "ok": False} for name in names}
    result: Json = {
        "benchmark": "profiles",
        "commit": provenance.commit(),
        "versions": provenance.versions("torch"),
        "passed": False,
        "examples": list(rows.values()),
    }
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ready = (prepared(stack, name, folder) for name in names)
        opened = await asyncio.gather(*ready, return_exceptions=True)
        examples = [example for example in opened if isinstance(example, Example)]
        for name, failure in zip(names, opened, strict=True):
            if isinstance(failure, BaseException):
                rows[name]["why"] = f"{type(failure).__name__}: {failure}"
        for part, measure_part in PARTS.items():  # the verdicts last: baselines compile in the meantime
            for example in examples:
                rows[example.name] |= {"strategy": example.strategy}
                rows[example.name][part] = await kept(measure_part(example, folder))
                print(example.name, part, json.dumps(rows[example.name][part]), flush=True)
                provenance.write("profiles", result | example.machine, shown=False)
        for example in examples:
            rows[example.name]["ok"] = all(rows[example.name][part]["ok"] for part in PARTS)
            result |= example.machine
        result["passed"] = all(row["ok"] for row in rows.values())
        provenance.write("profiles", result, shown=False)
    return 0 if result["passed"] else 1


@dataclass(frozen=True)
class Example:
    """An open example and the kernel of its costliest subtask."""

    name: str
    opened: OpenBench
    region: Region
    strategy: str
    source: Path
    build: Build

    @property
    def bench(self) -> Bench:
        return self.opened.bench

    @property
    def target(self) -> Json:
        return target_of(self.region)

    @property
    def machine(self) -> Json:
        """The device and its profilers."""
        cuda = self.bench.cuda
        assert cuda
        return {"device": cuda.device, "nsys": str(cuda.toolkit.nsys), "ncu": str(cuda.toolkit.ncu)}

    async def warm(self, *, wait: bool) -> None:
        """Let the baselines compile, or wait until they have."""
        await self.opened.judge.call("warm", {"target": self.target, "wait": wait}, timeout=SECONDS)

    def without(self, **tools: None) -> Bench:
        """The bench as it is where those tools are missing."""
        cuda = self.bench.cuda
        assert cuda
        return replace(self.bench, cuda=replace(cuda, toolkit=replace(cuda.toolkit, **tools)))


async def prepared(stack: AsyncExitStack, name: str, folder: Path) -> Example:
    """Opened, its kernel built, its baselines begun."""
    opened = await stack.enter_async_context(open_bench(provenance.ROOT, Settings(), f"examples/{name}.py"))
    graph, cuda, device = opened.exported.graph, opened.bench.cuda, opened.device
    assert cuda, "this machine has no GPU"
    region = plan(graph, str(device), opened.peaks).proposals[0].region
    written = BuiltinCoder().attempt(graph, region, device=str(device))
    assert written
    source = folder / f"{name}.cu"
    source.write_text(written.source)
    build = await cuda.build(source)
    assert build.ok, build.diagnostics
    example = Example(name, opened, region, written.strategy, source, build)
    await example.warm(wait=False)
    if opened.bench.emulator:
        await opened.bench.emulator.build(source, Mode.CHECK, timeout=SECONDS)
    return example


async def by_nsys(example: Example, folder: Path) -> Json:
    """The reference's passes: our reading of the trace, and nsys's own sums."""
    cuda = example.bench.cuda
    assert cuda
    assert cuda.toolkit.nsys
    environment = reference_environment({"CUDA_VISIBLE_DEVICES": cuda.uuid})
    command = [example.bench.python, str(BOOT), "forward", json.dumps(example.opened.options), str(RUNS)]
    made = folder / f"{example.name}-nsys"
    made.mkdir()
    answer = await trace(cuda.toolkit.nsys, command, environment, made)
    if answer.spans is None:
        return {"ok": False, "why": answer.why}
    theirs = await summaries.of_nsys(cuda.toolkit.nsys, made / "run.sqlite")
    sums = {name: compared(answer.spans, name, theirs.sums[name]) for name in theirs.sums}
    return {
        "ok": all(one["equal"] for one in sums.values()),
        "by": theirs.by,
        **sums,
        "system": told(system_of(answer.spans, RUNS)),
        "seconds": round(answer.seconds, 1),
    }


def compared(spans: Spans, name: str, theirs: summaries.Sum) -> Json:
    """All spans of one sort beside nsys's sum of them."""
    ours = getattr(spans, name)
    us = sum(span.us for span in ours)
    return {
        "us": round(us, 2),
        "us_by_nsys": round(theirs.us, 2),
        "count": len(ours),
        "count_by_nsys": theirs.count,
        "equal": len(ours) == theirs.count and abs(us - theirs.us) <= NEAR * theirs.us,
    }


async def by_ncu(example: Example, folder: Path) -> Json:
    """The kernel's counters: our reading of the report, and ncu's own summary."""
    cuda, report = example.bench.cuda, folder / f"{example.name}.ncu-rep"
    assert cuda
    assert cuda.toolkit.ncu
    asked = questions(example.source.read_text(), example.build.kernels)
    async with solo(example.bench, example.target, Path(example.build.artifact), full=True) as alone:
        answer = await measure(cuda.toolkit.ncu, alone, asked, report)
    if not answer.kernels:
        return {"ok": False, "why": answer.why}
    theirs = {base_name(k): m for k, m in (await summaries.of_ncu(cuda.toolkit.ncu, report)).items()}
    rows = [row for kernel in answer.kernels for row in figures(kernel, theirs.get(kernel.kernel, {}))]
    return {
        "ok": bool(rows) and all(row["equal"] for row in rows),
        "tool": answer.tool,
        "notes": list(answer.notes),
        "figures": rows,
        "seconds": round(answer.seconds, 1),
    }


def figures(kernel: KernelProfile, theirs: dict[str, float]) -> Iterator[Json]:
    """Figures that ncu's summary has too, the time always: averages of all launches."""
    ours = {
        TIME: kernel.time_us / kernel.launches / 1e6,
        "dram__bytes.sum": (kernel.dram_bytes or 0.0) / kernel.launches,
        **(
            {
                "launch__registers_per_thread": kernel.registers,
                "launch__grid_size": kernel.blocks,
                "launch__block_size": kernel.threads,
                "sm__throughput.avg.pct_of_peak_sustained_elapsed": kernel.sm_percent or 0.0,
                "sm__warps_active.avg.pct_of_peak_sustained_active": kernel.occupancy_percent or 0.0,
            }
            if kernel.launches == 1
            else {}
        ),
    }
    for metric, value in ours.items():
        their = theirs.get(metric)
        if their is None and metric != TIME:
            continue
        rounding = ROUNDED if "pct" in metric else 1e-8
        yield {
            "kernel": kernel.kernel,
            "metric": metric,
            "value": value,
            "by_ncu": their,
            "equal": their is not None and abs(value - their) <= NEAR * abs(their) + rounding,
        }


async def by_cupti(example: Example, folder: Path) -> Json:
    """Neither nsys nor ncu: torch's profiler, for the reference and for the kernel."""
    bare = example.without(nsys=None, ncu=None)
    reference = await of_reference(bare, example.opened.options, example.opened.summary.forward_seconds)
    kernel = await profiled(bare, example.target, example.source, example.build)
    full = await profiled(example.without(ncu=None), example.target, example.source, example.build)
    assert kernel
    assert full
    times = [times_of(kernel), times_of(full)]
    same = times[0].keys() == times[1].keys() and all(
        abs(us - times[1][name]) <= SAME_KERNEL * times[1][name] for name, us in times[0].items()
    )
    return {
        "ok": same and kernel.evidence == "cupti" and reference.evidence == "cupti",
        "reference": {"evidence": reference.evidence, "why": reference.why, **traced(reference)},
        "evidence": kernel.evidence,
        "why": kernel.why,
        "kernels_us": times[0],
        "kernels_us_by_nsys": times[1],
        "seconds": kernel.seconds,
        "seconds_by_nsys": full.seconds,
    }


def times_of(profile: Profile) -> dict[str, float]:
    kernels = profile.system.kernels if profile.system else ()
    return {kernel.kernel: round(kernel.time_us, 2) for kernel in kernels}


def traced(found: Trace) -> Json:
    return told(found.system) if found.system else {}


def told(system: SystemProfile) -> Json:
    return {
        "wall_us": round(system.wall_us, 1),
        "busy_share": round(system.busy_share, 3),
        "launches": system.launches,
        "launch_us": round(system.launch_us, 1),
    }


async def verdict_seconds(example: Example, folder: Path) -> Json:
    """The Verifier's whole work on a new best version, with a profile and without, all caches warm."""
    cuda = example.bench.cuda
    assert cuda
    await example.warm(wait=True)
    plain = replace(example.bench, cuda=replace(cuda, profiles=None))
    profiled_one, without = await judged(example.bench, example), await judged(plain, example)
    profile = profiled_one.profile
    assert profile
    return {
        "ok": profiled_one.correct and profile.evidence in ("ncu", "nsys"),
        "without": round(without.seconds, 2),
        "with": round(profiled_one.seconds, 2),
        "profile": profile.seconds,
        "evidence": profile.evidence,
        "why": profile.why,
        "summary": profiled_one.summary,
    }


async def judged(bench: Bench, example: Example) -> Verdict:
    return await verify_region(bench, example.source, example.region, becomes_best=lambda _: True)


PARTS = {
    "nsys": by_nsys,
    "ncu": by_ncu,
    "without_profilers": by_cupti,
    "verdict_seconds": verdict_seconds,
}

if __name__ == "__main__":
    sys.exit(main())
