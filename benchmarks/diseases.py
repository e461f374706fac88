"""Does stitch name what slows a kernel down?  Kernels built to have one disease each, profiled and diagnosed.

``python benchmarks/diseases.py [--only NAME] [--without-nsys] [--record FOLDER]`` needs an NVIDIA GPU, nvcc
and ncu.  It prints what is found of each kernel of ``tests/diseases``, writes
``benchmarks/results/diseases.json`` after each (not with --only), and ends with 1 when one was diagnosed
wrongly.  FOLDER gets what the profilers said, trimmed: the tests run the rules on that.
"""

import argparse
import asyncio
import csv
import io
import sys
import tempfile
import traceback
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import provenance

from stitch_tui.agents.builtin.roles import work_of
from stitch_tui.agents.diagnosis import diagnose
from stitch_tui.agents.state import Disease
from stitch_tui.tools import process, reference
from stitch_tui.tools.bench import target_of
from stitch_tui.tools.build import build_cuda
from stitch_tui.tools.gpu import devices
from stitch_tui.tools.graph import Graph, region_of
from stitch_tui.tools.judge import Judge
from stitch_tui.tools.profiling.candidate import profiled
from stitch_tui.tools.profiling.metrics import Question, metrics
from stitch_tui.tools.profiling.ncu_csv import KERNEL
from stitch_tui.tools.profiling.profile import Profile
from stitch_tui.tools.profiling.summary import lines
from stitch_tui.tools.toolkit import find_toolkit
from stitch_tui.tools.verdict import Build
from stitch_tui.tools.verification import Bench, Cuda

SOURCES = Path(__file__).parents[1] / "tests" / "diseases"
MODEL = """
import torch

class Model(torch.nn.Module):
    def forward(self, {names}):
{body}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""
HADAMARD = """
for step in (1, 2, 4, 8, 16, 32):
    y = x.view(32 // step, 2, step, -1)
    x = torch.stack((y[:, 0] + y[:, 1], y[:, 0] - y[:, 1]), 1).reshape(64, -1)
return x
"""
VARIOUS = """
y = x.view(-1, 8)
f = (torch.sin, torch.cos, torch.exp, torch.log1p, torch.tanh, torch.erf, torch.atan, torch.sinh)
return torch.stack([f[k](y[:, k]) for k in range(8)], 1).reshape(-1)
"""
SETTLED = """
for _ in range(64):
    x = x.tanh()
return x
"""


@dataclass(frozen=True)
class Case:
    """A kernel of ``tests/diseases``, what it computes, and what is wrong with it."""

    name: str
    disease: Disease
    body: str
    shapes: tuple[tuple[int, ...], ...]
    dtype: str = "f32"

    def model(self) -> str:
        names = ("x", "w")[: len(self.shapes)]
        body = "\n".join(f"        {line}" for line in self.body.strip().splitlines())
        inputs = ", ".join(f"torch.rand{shape}" for shape in self.shapes)
        return MODEL.format(names=", ".join(names), body=body, inputs=inputs)


CASES = (
    Case("healthy", Disease.MEMORY, "return x * 2", ((1 << 26,),)),
    Case("uncoalesced", Disease.UNCOALESCED, "return x * 2", ((4096, 4096),)),
    Case("bank_conflicts", Disease.BANK_CONFLICTS, "return x.t().contiguous()", ((8192, 8192),)),
    Case("low_occupancy", Disease.LOW_OCCUPANCY, "return x * 2", ((16384, 4096),)),
    Case("latency_bound", Disease.LATENCY, "return x.cumsum(0)", ((256, 1 << 16),)),
    Case("launch_bound", Disease.LAUNCH_BOUND, "return x + 64", ((4096,),)),
    Case("host_bound", Disease.HOST_BOUND, "return x * 2", ((1 << 20,),)),
    Case("spill", Disease.SPILL, HADAMARD, ((64, 1 << 18),)),
    Case("divergent", Disease.DIVERGENCE, VARIOUS, ((1 << 24,),)),
    Case("no_tensor_cores", Disease.NO_TENSOR_CORES, "return x @ w", ((2048, 2048), (2048, 2048)), "f16"),
    Case("tail_effect", Disease.TAIL, SETTLED, ((140, 8192),)),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--without-nsys", action="store_true")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    return asyncio.run(run(options.only, options.record, nsys=not options.without_nsys))


async def run(only: str, record: Path | None, *, nsys: bool) -> int:
    gpu, toolkit = devices()[0], await find_toolkit()
    if not nsys:
        toolkit = replace(toolkit, nsys=None)
    cases = [case for case in CASES if only in case.name]
    rows: list[dict[str, Any]] = []
    result = {
        "benchmark": "diseases",
        "commit": provenance.commit(),
        "device": str(gpu),
        "ncu": str(toolkit.ncu),
        "nsys": str(toolkit.nsys),
        "versions": provenance.versions("torch"),
        "passed": False,
        "cases": rows,
    }
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cuda = Cuda(
            gpu.name, gpu.arch, toolkit, folder / "builds", uuid=gpu.uuid, profiles=folder / "profiles"
        )
        ready = await asyncio.gather(*(prepared(stack, cuda, case, folder) for case in cases))
        for case, kernel in zip(cases, ready, strict=True):
            try:
                row = await examined(case, kernel, record)
            except Exception as error:  # whatever it is, it costs this case alone
                traceback.print_exc()
                row = {"case": case.name, "ok": False, "diagnosis": f"{error!r}", "profile": []}
            print(f"{'ok' if row['ok'] else 'WRONG'}  {case.name}: {row['diagnosis']}", flush=True)
            print("".join(f"      {line}\n" for line in row["profile"]), end="", flush=True)
            rows.append(row)
            result["passed"] = len(rows) == len(cases) and all(row["ok"] for row in rows)
            if not only:
                provenance.write("diseases", result, shown=False)
    return 0 if result["passed"] else 1


@dataclass(frozen=True)
class Kernel:
    """A built case with its open reference."""

    bench: Bench
    graph: Graph
    source: Path
    build: Build


async def prepared(stack: AsyncExitStack, cuda: Cuda, case: Case, folder: Path) -> Kernel:
    (folder / f"{case.name}.py").write_text(case.model())
    source = SOURCES / f"{case.name}.cu"
    build = await build_cuda(source, arch=cuda.arch, toolkit=cuda.toolkit, cache=cuda.cache)
    assert build.ok, build.diagnostics
    judge = await stack.enter_async_context(Judge(sys.executable, folder))
    options = reference.ReferenceOptions(path=f"{case.name}.py", device="cuda:0", dtype=case.dtype)
    await reference.open_reference(judge, options)
    graph = (await reference.graph(judge)).graph
    return Kernel(Bench(judge, None, python=sys.executable, cuda=cuda), graph, source, build)


async def examined(case: Case, kernel: Kernel, record: Path | None) -> dict[str, Any]:
    """One kernel, profiled as the Verifier does it."""
    region = region_of(kernel.graph, kernel.graph.node)
    target = target_of(region)
    profile = await profiled(kernel.bench, target, kernel.source, kernel.build)
    assert profile is not None
    found = diagnose(profile, work_of(kernel.graph, region))
    if record and kernel.bench.cuda:
        ncu = kernel.bench.cuda.toolkit.ncu
        await keep(record, case.name, profile.model_copy(update={"report": ""}), Path(profile.report), ncu)
    return {
        "case": case.name,
        "expected": case.disease,
        "ok": bool(found) and found[0].disease is case.disease,
        "diagnosis": f"{found[0].disease}: {found[0].evidence}" if found else "nothing",
        "others": [d.disease for d in found[1:]],
        "evidence": profile.evidence,
        "system_evidence": profile.system_evidence,
        "seconds": profile.seconds,
        "profile": lines(profile),
        "notes": list(profile.notes),
    }


async def keep(record: Path, name: str, profile: Profile, report: Path, ncu: Path | None) -> None:
    """The profile as JSON, and ncu's own table without the columns about this machine."""
    record.mkdir(parents=True, exist_ok=True)
    (record / f"{name}.json").write_text(profile.model_dump_json(indent=1, exclude_none=True))
    if ncu is None or not report.is_file():
        return
    argv = [str(ncu), "--import", str(report), "--csv", "--page", "raw", "--print-units", "base"]
    table_text = (await process.run(argv, timeout=60)).stdout
    header, *rest = csv.reader(io.StringIO(table_text[max(0, table_text.find('"ID"')) :]))
    rows = [header, *(row for row in rest if len(row) == len(header))]
    wanted = {"ID", KERNEL, *metrics(tuple(Question))}
    columns = [at for at, cell in enumerate(rows[0]) if cell in wanted]
    with (record / f"{name}.csv").open("w", newline="") as file:
        table = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        table.writerows([row[at] for at in columns] for row in rows[:4])


if __name__ == "__main__":
    sys.exit(main())
