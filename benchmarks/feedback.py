"""Does the built-in Coder, told the diagnosis, mend what is wrong?  Six tasks with an unlucky first version.

``python benchmarks/feedback.py [NAME ...]`` needs an NVIDIA GPU, nvcc and ncu.  Each task's first version
is the strategy named here; it is profiled and diagnosed, the built-in Coder chooses the next one by that,
which is profiled too.  A disease is gone when the same change is not asked for again; the gain is in the time
of all kernels of a run.  Writes ``benchmarks/results/feedback.json`` after each task; ends with 1 when a
disease stayed or a next version was not faster.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import provenance
from diseases import MODEL
from parts import kept

from stitch_tui.agents.builtin.coder import BuiltinCoder, emit_source, strategies
from stitch_tui.agents.builtin.lower import lower
from stitch_tui.agents.builtin.roles import work_of
from stitch_tui.agents.diagnosis import Diagnosis, diagnose
from stitch_tui.tools import reference
from stitch_tui.tools.bench import Bench, Cuda, Json, target_of
from stitch_tui.tools.gpu import devices
from stitch_tui.tools.graph import Graph, Region, region_of
from stitch_tui.tools.judge import Judge
from stitch_tui.tools.profiling.candidate import profiled
from stitch_tui.tools.profiling.profile import Profile
from stitch_tui.tools.toolkit import find_toolkit
from stitch_tui.tools.verdict import Build


@dataclass(frozen=True)
class Task:
    """What is computed, and the strategy to begin with."""

    name: str
    body: str
    shapes: tuple[tuple[int, ...], ...]
    first: str
    dtype: str = "f32"

    def model(self) -> str:
        names = ("x", "w")[: len(self.shapes)]
        inputs = ", ".join(f"torch.rand{shape}" for shape in self.shapes)
        return MODEL.format(names=", ".join(names), body=f"        {self.body}", inputs=inputs)


TASKS = (
    Task("small product", "return x @ w", ((512, 4096), (4096, 512)), "tile-128x128x8"),
    Task("large product", "return x @ w", ((4096, 4096), (4096, 4096)), "tile-32x32x32"),
    Task("half product", "return x @ w", ((4096, 4096), (4096, 4096)), "tile-128x128x8", "f16"),
    Task("few long rows", "return x.softmax(-1)", ((4, 1 << 20),), "warp-per-row"),
    Task("few long columns", "return x.sum(0)", ((1 << 18, 32),), "column-per-thread"),
    Task("wide rows", "return torch.nn.functional.layer_norm(x, (16384,))", ((8192, 16384),), "warp-per-row"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="default: all; a task that is not named keeps its figures")
    return asyncio.run(run(parser.parse_args().names))


async def run(names: list[str]) -> int:
    gpu, toolkit = devices()[0], await find_toolkit()
    tasks = [task for task in TASKS if not names or task.name in names]
    rows = known_rows()
    result = {
        "benchmark": "feedback",
        "device": str(gpu),
        "versions": provenance.versions("torch"),
        "passed": False,
        "tasks": rows,
    }
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cuda = Cuda(
            gpu.name, gpu.arch, toolkit, folder / "builds", uuid=gpu.uuid, profiles=folder / "profiles"
        )
        patients = await asyncio.gather(*(opened(stack, cuda, task, folder) for task in tasks))
        treated = [(patient, await kept(diagnosed(patient))) for patient in patients]
        for patient, treatment in treated:
            row = treatment if isinstance(treatment, dict) else await kept(mended(patient, treatment))
            rows[patient.task.name] = row | {"commit": provenance.commit()}
            print(patient.task.name, row, flush=True)
            result["passed"] = rows.keys() == {task.name for task in TASKS} and all(
                row["ok"] for row in rows.values()
            )
            provenance.write("feedback", result, shown=False)
    return 0 if result["passed"] else 1


def known_rows() -> dict[str, Json]:
    """Figures of earlier runs, by task; each says at which commit."""
    path = provenance.RESULTS / "feedback.json"
    rows: dict[str, Json] = json.loads(path.read_text())["tasks"] if path.exists() else {}
    return {task.name: rows[task.name] for task in TASKS if task.name in rows}


@dataclass(frozen=True)
class Version:
    """One strategy of a task, built."""

    strategy: str
    source: Path
    build: Build


@dataclass(frozen=True)
class Patient:
    """A task with its open reference and its first version."""

    task: Task
    bench: Bench
    graph: Graph
    region: Region
    first: Version
    folder: Path


async def opened(stack: AsyncExitStack, cuda: Cuda, task: Task, folder: Path) -> Patient:
    path = folder / f"{task.name.replace(' ', '_')}.py"
    path.write_text(task.model())
    judge = await stack.enter_async_context(Judge(sys.executable, folder))
    options = reference.ReferenceOptions(path=path.name, device="cuda:0", dtype=task.dtype)
    await reference.open_reference(judge, options)
    graph = (await reference.graph(judge)).graph
    region = region_of(graph, graph.node)
    first = first_source(graph, region, task)
    version = await built(cuda, path.with_suffix(".first.cu"), task.first, first)
    return Patient(task, Bench(judge, None, python=sys.executable, cuda=cuda), graph, region, version, folder)


def first_source(graph: Graph, region: Region, task: Task) -> str:
    """The unlucky strategy's text."""
    subtask = lower(graph, region)
    tune = next(tune for tune in strategies(subtask, "cuda") if tune.name == task.first)
    return emit_source(graph, subtask, tune)


async def built(cuda: Cuda, source: Path, strategy: str, text: str) -> Version:
    source.write_text(text)
    build = await cuda.build(source)
    assert build.ok, build.diagnostics
    return Version(strategy, source, build)


@dataclass(frozen=True)
class Treatment:
    """What is wrong with the first version, and the version that the Coder makes of it."""

    before: Profile
    sick: tuple[Diagnosis, ...]
    next: asyncio.Task[Version]
    """It builds while the next patient is looked at."""


async def diagnosed(patient: Patient) -> Treatment:
    bench, task = patient.bench, patient.task
    assert bench.cuda
    before = await examined(patient, patient.first)
    sick = diagnose(before, work_of(patient.graph, patient.region))
    disease = sick[0].disease if sick else None
    written = BuiltinCoder().attempt(
        patient.graph, patient.region, device=bench.cuda.device, tried=[task.first], disease=disease
    )
    assert written
    source = patient.first.source.with_suffix("").with_suffix(".next.cu")
    building = asyncio.create_task(built(bench.cuda, source, written.strategy, written.source))
    return Treatment(before, sick, building)


async def mended(patient: Patient, treatment: Treatment) -> Json:
    """The next version, beside the first."""
    before, sick, second = treatment.before, treatment.sick, await treatment.next
    after = await examined(patient, second)
    well = diagnose(after, work_of(patient.graph, patient.region))
    gain = time_us(before) / time_us(after)
    gone = bool(sick) and sick[0].change not in [one.change for one in well]
    return {
        "ok": gone and gain > 1,
        "disease": sick[0].disease if sick else None,
        "gone": gone,
        "gain": round(gain, 3),
        "before": told(patient.first, before, sick),
        "after": told(second, after, well),
    }


async def examined(patient: Patient, version: Version) -> Profile:
    target = target_of(patient.region)
    profile = await profiled(patient.bench, target, version.source, version.build)
    assert profile
    assert time_us(profile), profile.why
    return profile


def told(version: Version, profile: Profile, found: tuple[Diagnosis, ...]) -> dict[str, Any]:
    kernel = profile.kernels[0] if profile.kernels else None
    shown = ("blocks", "waves", "dram_percent", "l1_percent", "sm_percent", "tensor_percent", "dram_bytes")
    return {
        "strategy": version.strategy,
        "time_us": round(time_us(profile), 1),
        "evidence": profile.evidence,
        "diagnosis": f"{found[0].disease}: {found[0].evidence}" if found else "nothing",
        "change": found[0].change if found else "",
        "kernel": {"name": kernel.kernel, **kernel.model_dump(include=set(shown))} if kernel else None,
        "seconds": profile.seconds,
    }


def time_us(profile: Profile) -> float:
    """Of all kernels of a run: by the trace, else by ncu."""
    traced = profile.system.kernels if profile.system else profile.kernels
    return sum(kernel.time_us for kernel in traced)


if __name__ == "__main__":
    sys.exit(main())
