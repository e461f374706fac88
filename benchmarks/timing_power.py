"""How often does timing find a difference that is none, and does it find one of 3 %?

``python benchmarks/timing_power.py [--seconds 200] [--more]`` on a machine with a GPU writes
``benchmarks/results/timing_power.json`` and prints a table; with ``--more`` its runs stand behind those that
are there.  The file is written after every few runs, so that a cut run loses nothing; each run names its
commit and how many sets of inputs it rotated through.  Two GPUs measure side by side with
``CUDA_VISIBLE_DEVICES`` and ``--output FILE`` of their own; ``--merge FILE ...`` adds those files to the
result.  Every run starts a new process for each contestant and interleaves them as a verdict's timing does:

* *short*: a kernel of some 10 us against itself (A/A);
* *long*: a kernel of about 1 ms against itself, and against one that does 3 % more work.

A false positive is an A/A run that is called faster or slower; its rate has a Clopper-Pearson upper bound.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable
from math import comb
from pathlib import Path
from statistics import median, pstdev
from typing import Any

import provenance

from stitch_tui.tools import launches, reference
from stitch_tui.tools.bench import Bench, Cuda, target_of
from stitch_tui.tools.build import build_cuda
from stitch_tui.tools.gpu import devices
from stitch_tui.tools.graph import region_of
from stitch_tui.tools.judge import Judge
from stitch_tui.tools.timing import clocks, medians, speedup, summary
from stitch_tui.tools.toolkit import find_toolkit
from stitch_tui.tools.worker import samples

MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.rand(EXTENT)]

def get_init_inputs():
    return []
"""
KERNEL = """
#include <cuda_runtime.h>
#include "stitch.h"
// Twice x, as the limit of a sum: any number of steps above thirty gives the same result.
__global__ void doubled(const float* x, float* y, int n, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i], sum = v;
  for (int s = 0; s < steps; s++) sum = fmaf(sum, 0.5f, v);
  y[i] = sum;
}
extern "C" int stitch_run(const stitch_call* c) {
  int n = (int)c->in[0].numel;
  doubled<<<(n + 255) / 256, 256, 0, (cudaStream_t)c->stream>>>(
      (const float*)c->in[0].data, (float*)c->out[0].data, n, STEPS);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
"""
EXTENTS = {"short": 1 << 20, "long": 1 << 22}
SHORT_STEPS, PLANTED, LONG_US = 60, 0.03, 1000.0
KINDS = ("short", "long", "planted")
LIMITS = {"false_positives": 0.08, "detected": 0.90}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=200.0, help="for all runs together")
    parser.add_argument("--runs", type=int, default=110, help="most runs of the long kernel")
    parser.add_argument("--more", action="store_true", help="add to the runs of the last result")
    parser.add_argument("--output", type=Path, default=provenance.RESULTS / "timing_power.json")
    parser.add_argument(
        "--merge", type=Path, nargs="*", default=[], help="results of other runs, to be added"
    )
    options = parser.parse_args()
    before = json.loads(options.output.read_text()) if options.more or options.merge else None

    def keep(result: dict[str, Any]) -> dict[str, Any]:
        whole = joined(before, result) if before else result
        options.output.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
        return whole

    if options.merge:
        for path in options.merge:
            before = keep(json.loads(path.read_text()))
        result = before
    else:
        result = keep(asyncio.run(measured(options.seconds, options.runs, keep)))
    print(table(result))
    return 0 if result["passed"] else 1


async def measured(seconds: float, most: int, keep: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """All runs; `keep` is given those so far after every few."""
    gpu, toolkit = devices()[0], await find_toolkit()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        courts = {}
        for name, extent in EXTENTS.items():
            (folder / f"{name}.py").write_text(MODEL.replace("EXTENT", str(extent)))
            judge = Judge(sys.executable, folder)
            await judge.start()
            options = reference.ReferenceOptions(path=f"{name}.py", device="cuda:0")
            await reference.open_reference(judge, options)
            graph = (await reference.graph(judge)).graph
            region = region_of(graph, graph.node)
            target = target_of(region)
            cuda = Cuda(gpu.name, gpu.arch, toolkit, folder / "builds", uuid=gpu.uuid)
            courts[name] = Court(Bench(judge, None, python=sys.executable, cuda=cuda), target, folder)
        try:
            runs = await repeated(courts, seconds, most, lambda so_far: keep(summed_up(so_far, str(gpu))))
        finally:
            for court in courts.values():
                await court.bench.judge.close()
        return summed_up(runs, str(gpu))


class Court:
    """One judge with its reference, and candidates for it."""

    def __init__(self, bench: Bench, target: dict[str, Any], folder: Path) -> None:
        self.bench, self.target, self.folder = bench, target, folder

    async def runner(self, steps: int) -> dict[str, Any]:
        cuda = self.bench.cuda
        assert cuda
        source = self.folder / f"doubled_{steps}.cu"
        source.write_text(KERNEL.replace("STEPS", str(steps)))
        build = await build_cuda(source, arch=cuda.arch, toolkit=cuda.toolkit, cache=cuda.cache)
        assert build.ok, build.diagnostics
        return launches.on_gpu(self.bench, build)

    async def race(self, runner: dict[str, Any], rivals: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """One timing: the judge's answer, and how long it took."""
        params = {"target": self.target, "runner": runner, "rivals": rivals, "options": {"baselines": []}}
        assert self.bench.cuda
        started = time.monotonic()
        with clocks(self.bench.cuda.uuid) as observed:
            report: dict[str, Any] = await self.bench.judge.call(
                "time", params, timeout=120, on_event=observed.heard
            )
        assert report["category"] == "correct", report["findings"]
        return report | {"seconds": time.monotonic() - started, "clocks": observed.as_environment()}


async def repeated(
    courts: dict[str, Court], seconds: float, most: int, keep: Callable[[dict[str, Any]], Any]
) -> dict[str, Any]:
    """Short and long runs in turn until both have had their number or the time is over."""
    short = await courts["short"].runner(SHORT_STEPS)
    steps = await steps_for(courts["long"], LONG_US)
    long, slower = (
        await courts["long"].runner(steps),
        await courts["long"].runner(round(steps * (1 + PLANTED))),
    )
    runs: dict[str, Any] = {"steps": steps, "short": [], "long": [], "planted": [], "clocks": []}
    end = time.monotonic() + seconds
    for _ in range(most):
        for _ in range(2):
            report = await courts["short"].race(short, {"again": short})
            runs["short"].append(compared(report, "again"))
        report = await courts["long"].race(long, {"again": long, "slower": slower})
        runs["long"].append(compared(report, "again"))
        runs["planted"].append(compared(report, "slower"))
        runs["clocks"].append(report["clocks"])
        keep(runs)
        if time.monotonic() > end:
            break
    return runs


async def steps_for(court: Court, wanted_us: float) -> int:
    """Steps with which the kernel takes about so long."""
    guess = 4000
    report = await court.race(await court.runner(guess), {})
    return round(guess * wanted_us / summary(report["blocks"]["candidate"]).median_us)


def compared(report: dict[str, Any], rival: str) -> dict[str, Any]:
    """The rival's time over the candidate's, as a verdict states a speedup."""
    blocks = report["blocks"]
    found = speedup(medians(blocks[rival]), medians(blocks["candidate"]))
    own, other = summary(blocks["candidate"]), summary(blocks[rival])
    return {
        "value": round(found.value, 5),
        "low": round(found.low, 5),
        "high": round(found.high, 5),
        "verdict": found.verdict,
        "median_us": round(own.median_us, 2),
        "intervals_overlap": own.low_us <= other.high_us and other.low_us <= own.high_us,
        "seconds": round(report["seconds"], 2),
        "notes": report["notes"],
        "sets": report["environment"]["rotating_sets"],
        "commit": provenance.commit(),
    }


def summed_up(runs: dict[str, Any], device: str) -> dict[str, Any]:
    same = [*runs["short"], *runs["long"]]
    false = different(same)
    found = sum(run["verdict"] == "faster" for run in runs["planted"])
    bound = upper_bound(false, len(same))
    rate = found / max(1, len(runs["planted"]))
    return {
        "benchmark": "timing_power",
        "commit": provenance.commit(),
        "device": device,
        "versions": provenance.versions("torch"),
        "resolution": [samples.RESOLUTION, samples.RESOLUTION_US],
        "confidence": samples.CONFIDENCE,
        "same_program": {
            "runs": len(same),
            "called_different": false,
            "rate": round(false / len(same), 4),
            "upper_bound_95": round(bound, 4),
            "intervals_overlap": sum(run["intervals_overlap"] for run in same),
            "by_sets": {
                str(sets): [len(own := [r for r in same if r.get("sets", 3) == sets]), different(own)]
                for sets in sorted({run.get("sets", 3) for run in same})
            },
            **{name: spread(runs[name]) for name in ("short", "long")},
        },
        "planted": {
            "difference": PLANTED,
            "runs": len(runs["planted"]),
            "found": found,
            "rate": round(rate, 4),
            **spread(runs["planted"]),
        },
        "passed": bound < LIMITS["false_positives"] and rate >= LIMITS["detected"],
        "runs": {name: runs[name] for name in KINDS},
        "clocks": runs["clocks"][:: max(1, len(runs["clocks"]) // 5)],
    }


def different(runs: list[dict[str, Any]]) -> int:
    """How many are called faster or slower."""
    return sum(run["verdict"] != "not distinguishable" for run in runs)


def joined(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Both results as one; each run names its commit."""
    same = ("device", "resolution", "confidence")
    assert all(before[name] == now[name] for name in same), "measured under other conditions"
    runs: dict[str, Any] = {
        name: [
            {"commit": whole["commit"], "sets": 3} | run
            for whole in (before, now)
            for run in whole["runs"][name]
        ]
        for name in KINDS
    }
    runs["clocks"] = [*before["clocks"], *now["clocks"]]
    whole = summed_up(runs, now["device"])
    commits = dict.fromkeys(run["commit"] for name in KINDS for run in runs[name])
    return whole | {"commit": ", ".join(commits)}


def spread(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Of the ratios between processes: what an interval from blocks alone cannot know."""
    values = [run["value"] for run in runs]
    return {
        "median_us": round(median(run["median_us"] for run in runs), 2),
        "ratio_median": round(median(values), 5),
        "ratio_deviation": round(pstdev(values), 5),
        "ratio_extremes": [min(values), max(values)],
    }


def upper_bound(found: int, runs: int, confidence: float = 0.95) -> float:
    """Largest rate that is still credible: Clopper and Pearson's one-sided bound, by bisection."""
    low, high = found / runs, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        tail = sum(comb(runs, k) * rate**k * (1 - rate) ** (runs - k) for k in range(found + 1))
        low, high = (rate, high) if tail > 1 - confidence else (low, rate)
    return high


def table(result: dict[str, Any]) -> str:
    same, planted = result["same_program"], result["planted"]
    return "\n".join(
        (
            "| question | runs | answer |",
            "| --- | --- | --- |",
            f"| same program called different | {same['runs']} | {same['called_different']}, rate below"
            f" {same['upper_bound_95']:.1%} (95 %) |",
            f"| intervals of the same program overlap | {same['runs']} | {same['intervals_overlap']} |",
            f"| {planted['difference']:.0%} more work on {planted['median_us'] / 1e3:.2f} ms found |"
            f" {planted['runs']} | {planted['found']} ({planted['rate']:.0%}) |",
        )
    )


if __name__ == "__main__":
    sys.exit(main())
