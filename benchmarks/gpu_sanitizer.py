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
from stitch_tui.tools.bench import target_of
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
LIBRARY = """
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include "stitch.h"
#define LT(name) cublasLt##name
static const int N = 1024;
__global__ void doubled(const float* x, float* y, const __nv_bfloat16* product, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) y[n - 1 - i] = x[i] * 2 READS;
}
extern "C" int stitch_sizes(const stitch_call* c, int64_t* workspace, int64_t* bound) {
  *workspace = 3 * N * N * 2; *bound = 0;
  return STITCH_OK;
}
extern "C" int stitch_run(const stitch_call* c) {
  int n = (int)c->in[0].numel;
  cudaStream_t stream = (cudaStream_t)c->stream;
  __nv_bfloat16 *a = (__nv_bfloat16*)c->workspace, *d = a + 2 * N * N;
  cudaMemsetAsync(a, 0, (INITIALISED) * N * N * 2, stream);
  static cublasLtHandle_t handle;
  static cublasLtMatmulDesc_t product;
  static cublasLtMatrixLayout_t layout;
  if (!handle) {
    LT(Create)(&handle);
    LT(MatmulDescCreate)(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    LT(MatrixLayoutCreate)(&layout, CUDA_R_16BF, N, N, N);
  }
  float one = 1, zero = 0;
  LT(Matmul)(handle, product, &one, a, layout, a + N * N, layout, &zero, d, layout, d, layout,
             nullptr, nullptr, 0, stream);
  doubled<<<(n + 127) / 128, 128, 0, stream>>>((const float*)c->in[0].data, (float*)c->out[0].data, d, n);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
"""
LIBRARY_CASES = {
    "the product is not read": {"READS": "", "INITIALISED": "2"},
    "the product is read": {"READS": "+ 0 * __bfloat162float(product[i])", "INITIALISED": "2"},
    "the product is read and its memory was set before": {
        "READS": "+ 0 * __bfloat162float(product[i])",
        "INITIALISED": "3",
    },
}
"""What initcheck says of a product by cublasLt tells why it accuses.  In the second alone, and in our kernel:
it does not see what the library writes.  In all three, and in the library's: the library reads what nobody
wrote.  In none: it may be asked.  (To exclude the library's kernels helps in no case: what a kernel writes
that is not instrumented counts as never written.)"""


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
            library = [await of_library(bench, region, name, folder, logs) for name in LIBRARY_CASES]
    return {
        "benchmark": "gpu_sanitizer",
        "commit": provenance.commit(),
        "device": str(gpu),
        "compute_sanitizer": str(toolkit.compute_sanitizer),
        "versions": provenance.versions("torch"),
        "passed": all(row["ok"] for row in rows) and wired["ok"],
        "cases": rows,
        "before_best": wired,
        "library": {"cases": library, "cause": cause(library)},
    }


async def of_library(
    bench: Bench, region: Region, name: str, folder: Path, logs: Path | None
) -> dict[str, Any]:
    """initcheck over a product by cublasLt, which a macro hides from the rule that leaves the tool out."""
    text = LIBRARY
    for place, replacement in LIBRARY_CASES[name].items():
        text = text.replace(place, replacement)
    source = folder / f"{name.replace(' ', '_')}.cu"
    source.write_text(text)
    cuda = bench.cuda
    assert cuda
    build = await build_cuda(source, arch=cuda.arch, toolkit=cuda.toolkit, cache=cuda.cache)
    if not build.ok:
        return {"case": name, "kernels": [], "why": build.diagnostics[0].message}
    target = target_of(region)
    found = await sanitized(bench, target, source, build)
    if logs and found.logs:
        logs.mkdir(parents=True, exist_ok=True)
        (logs / f"{source.stem}.initcheck.log").write_text(found.logs.get("initcheck", ""))
    uninitialised = [f for f in found.findings if f.category is Category.UNINITIALISED]
    row = {
        "case": name,
        "kernels": sorted({f.where for f in uninitialised}),
        "found": [f"{f.category} line {f.line} {f.where}: {f.message}" for f in found.findings[:4]],
        "why": "; ".join(line for line in found.unchecked if "initcheck" in line),
    }
    print(f"      library: {name}: {row['kernels'] or row['why'] or 'nothing'}", flush=True)
    return row


def cause(rows: list[dict[str, Any]]) -> str:
    """What the three cases say together."""
    if any(row["why"] for row in rows):
        return "not known: a case did not run"
    own = [any("doubled" in kernel for kernel in row["kernels"]) for row in rows]
    others = [any("doubled" not in kernel for kernel in row["kernels"]) for row in rows]
    if own == [False, True, False]:
        return "what the library writes is not seen"
    if any(others):
        return "the library's own kernels read what was never written"
    return "no accusation: initcheck may be asked" if not any(own) else "not known"


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
    target = target_of(region)
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
