"""Does compute-sanitizer, through stitch's code, find planted faults on the right line?

``python benchmarks/gpu_sanitizer.py [--logs FOLDER]`` needs an NVIDIA GPU, nvcc and compute-sanitizer.  It
prints a line for each case, writes ``benchmarks/results/gpu_sanitizer.json`` and ends with 1 when a fault
was missed, named wrongly, or found in a correct kernel.  FOLDER gets the tools' own logs: the fixtures of the
parser's tests are made from them.
"""

import argparse
import asyncio
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import provenance

from stitch_tui.tools import reference
from stitch_tui.tools.build import build_cuda
from stitch_tui.tools.gpu import devices
from stitch_tui.tools.graph import Region, region_of
from stitch_tui.tools.judge import Judge
from stitch_tui.tools.sanitizer import sanitized
from stitch_tui.tools.toolkit import find_toolkit
from stitch_tui.tools.verdict import Category
from stitch_tui.tools.verification import Bench, Cuda, verify_region

MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return x.flip(0) * 2

def get_inputs():
    return [torch.rand(4096)]

def get_init_inputs():
    return []
"""
KERNEL = """
#include <cuda_runtime.h>
#include "stitch.h"
__global__ void flipped(const float* x, float* y, float* spare, int n) {
  __shared__ float tile[128];
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  float v = i < n ? x[i] : 0.0f;
  BODY
}
extern "C" int stitch_sizes(const stitch_call* c, int64_t* workspace, int64_t* bound) {
  *workspace = c->in[0].numel * 4; *bound = 0;
  return STITCH_OK;
}
extern "C" int stitch_run(const stitch_call* c) {
  int n = (int)c->in[0].numel;
  flipped<<<(n + 127) / 128, 128, 0, (cudaStream_t)c->stream>>>(
      (const float*)c->in[0].data, (float*)c->out[0].data, (float*)c->workspace, n);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
"""
ORDERED = """tile[t] = v * 2;
  __syncthreads();
  int back = blockIdx.x * 128 + 127 - t;
  if (back < n) y[n - 1 - back] = tile[127 - t];"""
MARK = "  // FAULT"


@dataclass(frozen=True)
class Case:
    name: str
    body: str
    tool: str
    """That must find it; empty for a correct kernel."""
    category: Category = Category.CORRECT


CASES = (
    Case("correct", ORDERED, ""),
    Case(
        "write past the end",
        ORDERED + "\n  if (i == 0) y[n] = v;" + MARK,
        "memcheck",
        Category.OUT_OF_BOUNDS,
    ),
    Case(
        "read past the end",
        ORDERED + "\n  if (i == 0) spare[0] = x[n + 1];" + MARK,
        "memcheck",
        Category.OUT_OF_BOUNDS,
    ),
    Case(
        "misaligned read",
        ORDERED + "\n  if (i == 0) spare[0] = *(const float*)((const char*)x + 2);" + MARK,
        "memcheck",
        Category.MISALIGNED,
    ),
    Case(
        "missing barrier",
        "tile[t] = v * 2;"
        + MARK
        + "\n  int back = blockIdx.x * 128 + 127 - t;\n  if (back < n) y[n - 1 - back] = tile[127 - t];"
        + MARK,
        "racecheck",
        Category.RACE,
    ),
    Case(
        "uninitialised workspace",
        ORDERED + "\n  if (i < n) y[i] += 0 * spare[i];" + MARK,
        "initcheck",
        Category.UNINITIALISED,
    ),
    Case(
        "divergent barrier",
        ORDERED + "\n  if (t % 2) __syncthreads();" + MARK + "\n  tile[t] = v;\n  __syncthreads();"
        "\n  if (i < n) spare[i] = tile[127 - t];",
        "synccheck",
        Category.BARRIER,
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--logs", type=Path)
    options = parser.parse_args()
    result = asyncio.run(run(options.logs))
    provenance.write("gpu_sanitizer", result)
    return 0 if result["passed"] else 1


async def run(logs: Path | None) -> dict[str, Any]:
    gpu, toolkit = devices()[0], await find_toolkit()
    rows = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "model.py").write_text(MODEL)
        cuda = Cuda(gpu.name, gpu.arch, toolkit, folder / "builds", uuid=gpu.uuid)
        async with Judge(sys.executable, folder) as judge:
            await reference.open_reference(
                judge, reference.ReferenceOptions(path="model.py", device="cuda:0")
            )
            graph = (await reference.graph(judge)).graph
            region = region_of(graph, graph.node)
            bench = Bench(judge, None, python=sys.executable, cuda=cuda, deadline_s=10.0)
            for case in CASES:
                row = await examined(bench, region, case, folder, logs)
                print(f"{'ok' if row['ok'] else 'WRONG'}  {case.name}: {row['found']}", flush=True)
                rows.append(row)
            wired = await before_best(bench, region, folder)
    return {
        "benchmark": "gpu_sanitizer",
        "commit": provenance.commit(),
        "device": str(gpu),
        "compute_sanitizer": str(toolkit.compute_sanitizer),
        "versions": provenance.versions("torch"),
        "passed": all(row["ok"] for row in rows) and wired["ok"],
        "cases": rows,
        "before_best": wired,
    }


async def examined(
    bench: Bench, region: Region, case: Case, folder: Path, logs: Path | None
) -> dict[str, Any]:
    """One candidate under all four tools."""
    source = folder / f"{case.name.replace(' ', '_')}.cu"
    source.write_text(KERNEL.replace("BODY", case.body))
    marked = [n for n, line in enumerate(source.read_text().splitlines(), 1) if MARK.strip() in line]
    cuda = bench.cuda
    assert cuda
    build = await build_cuda(source, arch=cuda.arch, toolkit=cuda.toolkit, cache=cuda.cache)
    assert build.ok, build.diagnostics
    target = {"kind": "region", "region": region.model_dump(mode="json")}
    found = await sanitized(bench, target, source, build)
    if logs and found.logs:
        for tool in (case.tool,) if case.tool else found.logs:
            logs.mkdir(parents=True, exist_ok=True)
            (logs / f"{source.stem}.{tool}.log").write_text(found.logs[tool])
    right = [f for f in found.findings if f.category is case.category and {f.line, f.other_line} & {*marked}]
    return {
        "case": case.name,
        "tool": case.tool,
        "ok": bool(right) if case.tool else not found.findings and not found.unchecked,
        "found": [f"{f.category} line {f.line} {f.where}: {f.message}" for f in found.findings[:4]],
        "marked_lines": marked,
        "unchecked": list(found.unchecked),
        "seconds": round(found.seconds, 2),
    }


async def before_best(bench: Bench, region: Region, folder: Path) -> dict[str, Any]:
    """The whole verification of a right but unclean kernel that would become best."""
    source = folder / "unclean.cu"
    body = ORDERED + "\n  if (i == 0 && n > 1) spare[0] = spare[1] * 0;" + MARK
    source.write_text(KERNEL.replace("BODY", body))
    stages: list[str] = []

    def heard(event: str, data: dict[str, Any]) -> None:
        if event == "stage":
            stages.append(data["stage"])

    verdict = await verify_region(bench, source, region, becomes_best=lambda _: True, on_event=heard)
    return {
        "ok": verdict.category is Category.UNINITIALISED and "sanitizer" in stages,
        "category": verdict.category,
        "summary": verdict.summary,
        "line": verdict.findings[0].line if verdict.findings else 0,
        "stages": stages,
        "unchecked": list(verdict.unchecked),
    }


if __name__ == "__main__":
    sys.exit(main())
