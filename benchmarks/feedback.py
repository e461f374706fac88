"""Does the built-in Coder, told the diagnosis, mend what is wrong?  Six tasks with an unlucky first version.

``python benchmarks/feedback.py`` needs an NVIDIA GPU, nvcc and ncu.  Each task's first version is the
strategy named here; it is profiled and diagnosed, the built-in Coder chooses the next one by that, which is
profiled too.  Times are those of all kernels of a run.  Writes
``benchmarks/results/feedback.json``; ends with 1 when a next version was not faster.
"""

import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import provenance
from diseases import MODEL

from stitch_tui.agents.builtin.coder import BuiltinCoder, emit_source, strategies
from stitch_tui.agents.builtin.lower import lower
from stitch_tui.agents.builtin.roles import work_of
from stitch_tui.agents.diagnosis import diagnose
from stitch_tui.agents.state import Subtask
from stitch_tui.tools import reference
from stitch_tui.tools.bench import Bench, Cuda
from stitch_tui.tools.build import build_cuda
from stitch_tui.tools.gpu import devices
from stitch_tui.tools.graph import Graph, Region, region_of
from stitch_tui.tools.judge import Judge
from stitch_tui.tools.profiling.candidate import profiled
from stitch_tui.tools.profiling.profile import Profile
from stitch_tui.tools.toolkit import find_toolkit


@dataclass(frozen=True)
class Task:
    """What is computed, and the strategy to begin with."""

    name: str
    body: str
    shapes: tuple[tuple[int, ...], ...]
    first: str

    def model(self) -> str:
        names = ("x", "w")[: len(self.shapes)]
        inputs = ", ".join(f"torch.rand{shape}" for shape in self.shapes)
        return MODEL.format(names=", ".join(names), body=f"        {self.body}", inputs=inputs)


TASKS = (
    Task("small product", "return x @ w", ((128, 4096), (4096, 128)), "tile-128x128x8"),
    Task("large product", "return x @ w", ((4096, 4096), (4096, 4096)), "tile-32x32x32"),
    Task("few long rows", "return x.softmax(-1)", ((4, 1 << 20),), "warp-per-row"),
    Task("few long columns", "return x.sum(0)", ((1 << 18, 32),), "column-per-thread"),
    Task("wide rows", "return torch.nn.functional.layer_norm(x, (16384,))", ((8192, 16384),), "warp-per-row"),
    Task("few long scans", "return x.cumsum(-1)", ((256, 1 << 16),), "warp-per-row"),
)


def main() -> int:
    result = asyncio.run(run())
    provenance.write("feedback", result)
    return 0 if result["passed"] else 1


async def run() -> dict[str, Any]:
    gpu, toolkit = devices()[0], await find_toolkit()
    rows = []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cuda = Cuda(
            gpu.name, gpu.arch, toolkit, folder / "builds", uuid=gpu.uuid, profiles=folder / "profiles"
        )
        ready = await asyncio.gather(*(opened(stack, cuda, task, folder) for task in TASKS))
        for task, (bench, graph) in zip(TASKS, ready, strict=True):
            row = await mended(bench, graph, task, folder)
            print(row, flush=True)
            rows.append(row)
    return {
        "benchmark": "feedback",
        "commit": provenance.commit(),
        "device": str(gpu),
        "versions": provenance.versions("torch"),
        "passed": all(row["gain"] > 1 for row in rows),
        "tasks": rows,
    }


async def opened(stack: AsyncExitStack, cuda: Cuda, task: Task, folder: Path) -> tuple[Bench, Graph]:
    path = folder / f"{task.name.replace(' ', '_')}.py"
    path.write_text(task.model())
    judge = await stack.enter_async_context(Judge(sys.executable, folder))
    await reference.open_reference(judge, reference.ReferenceOptions(path=path.name, device="cuda:0"))
    return Bench(judge, None, python=sys.executable, cuda=cuda), (await reference.graph(judge)).graph


async def mended(bench: Bench, graph: Graph, task: Task, folder: Path) -> dict[str, Any]:
    """The unlucky version, its diagnosis, and the version that the Coder makes of it."""
    region = region_of(graph, graph.node)
    subtask = lower(graph, region)
    tune = next(tune for tune in strategies(subtask) if tune.name == task.first)
    before = await examined(bench, region, emit_source(graph, subtask, tune), folder)
    found = diagnose(before, work_of(graph, Subtask(id="s01", title=task.name, region=region)))
    disease = found[0].disease if found else None
    after = BuiltinCoder().attempt(graph, region, tried=[task.first], disease=disease)
    assert after
    then, now = time_us(before), time_us(await examined(bench, region, after.source, folder))
    return {
        "task": task.name,
        "first": task.first,
        "disease": disease,
        "evidence": found[0].evidence if found else "",
        "next": after.strategy,
        "before_us": round(then, 1),
        "after_us": round(now, 1),
        "gain": round(then / now, 3),
    }


async def examined(bench: Bench, region: Region, text: str, folder: Path) -> Profile:
    cuda = bench.cuda
    assert cuda
    source = folder / "candidate.cu"
    source.write_text(text)
    build = await build_cuda(source, arch=cuda.arch, toolkit=cuda.toolkit, cache=cuda.cache)
    assert build.ok, build.diagnostics
    target = {"kind": "region", "region": region.model_dump(mode="json")}
    profile = await profiled(bench, target, source, build)
    assert profile
    return profile


def time_us(profile: Profile) -> float:
    """Of all kernels of a run: by the trace, else by ncu."""
    traced = profile.system.kernels if profile.system else profile.kernels
    return sum(kernel.time_us for kernel in traced)


if __name__ == "__main__":
    sys.exit(main())
