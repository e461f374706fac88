"""Does verification work on this GPU?  One honest kernel, timed, and planted faults.

``python benchmarks/gpu_smoke.py`` needs an NVIDIA GPU, nvcc and a CUDA build of torch, prints one line
for each case, and ends with 1 when a verdict is not the expected one.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from stitch_tui.tools import reference
from stitch_tui.tools.gpu import devices
from stitch_tui.tools.graph import region_of
from stitch_tui.tools.judge import Judge
from stitch_tui.tools.toolkit import find_toolkit
from stitch_tui.tools.verdict import Category, Verdict
from stitch_tui.tools.verification import Bench, Cuda, verify_program, verify_region

MODEL = """
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(256, 128)

    def forward(self, x):
        return {body}

def get_inputs():
    return [torch.rand(4096, 256)]

def get_init_inputs():
    return []
"""
BODY = "torch.relu(self.layer(x))"
KERNEL = """
#include <cuda_runtime.h>
#include "stitch.h"
__global__ void linear_relu(const float* x, const float* w, const float* b, float* y,
                            int rows, int inner, int columns) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= rows * columns) return;
  int i = at / columns, j = at % columns;
  float sum = b[j];
  for (int k = 0; k < inner; k++) sum += x[i * inner + k] * w[j * inner + k];
  BEFORE
  y[at] = sum > 0 || sum != sum ? sum : 0.0f;
  AFTER
}
extern "C" int stitch_run(const stitch_call* c) {
  int rows = (int)c->in[0].shape[0], inner = (int)c->in[0].shape[1], columns = (int)c->in[1].shape[0];
  int total = rows * columns;
  ON_HOST
  linear_relu<<<(total + 127) / 128, 128, 0, STREAM>>>(
      (const float*)c->in[0].data, (const float*)c->in[1].data, (const float*)c->in[2].data,
      (float*)c->out[0].data, rows, inner, columns);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
"""
BLANK = {"BEFORE": "", "AFTER": "", "ON_HOST": "", "STREAM": "(cudaStream_t)c->stream"}
CASES: dict[str, tuple[Mapping[str, str], Category]] = {
    "honest": ({}, Category.CORRECT),
    "skips the last element": ({"BEFORE": "if (at == rows * columns - 1) return;"}, Category.NONFINITE),
    "writes past the end": ({"AFTER": "if (at == 0) y[rows * columns] = 0;"}, Category.OUT_OF_BOUNDS),
    "illegal address": ({"AFTER": "if (at == 0) *(float*)8 = 0;"}, Category.ILLEGAL_ACCESS),
    "modifies its input": ({"AFTER": "if (at == 0) ((float*)x)[0] += 1;"}, Category.HACK_SUSPECTED),
    "never ends": ({"BEFORE": "for (volatile int s = 0; at == 0; s = 0) {}"}, Category.HANG),
    "exits": ({"ON_HOST": "extern void exit(int); exit(0);"}, Category.HACK_SUSPECTED),
}


def planted(folder: Path, name: str, changes: Mapping[str, str]) -> Path:
    text = KERNEL
    for word, replacement in (BLANK | dict(changes)).items():
        text = text.replace(word, replacement)
    source = folder / f"{name.replace(' ', '_')}.cu"
    source.write_text(text)
    return source


def reported(name: str, verdict: Verdict, expected: Category) -> bool:
    good = verdict.category is expected
    print(f"{'ok' if good else 'WRONG'}  {name}: {verdict.summary}  [{verdict.seconds:.1f} s]", flush=True)
    if not good or verdict.timing:
        print(json.dumps(json.loads(verdict.model_dump_json(exclude={"build", "trials"})), indent=1))
    return good


async def run() -> bool:
    gpu, toolkit = devices()[0], await find_toolkit()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "model.py").write_text(MODEL.format(name="Model", body=BODY))
        module = folder / "model_new.py"
        module.write_text(MODEL.format(name="ModelNew", body="self.layer(x).clamp_min(0)"))
        cuda = Cuda(gpu.name, gpu.arch, toolkit, folder / "builds", uuid=gpu.uuid)
        async with Judge(sys.executable, folder) as judge:
            options = reference.ReferenceOptions(path="model.py", device="cuda:0")
            await reference.open_reference(judge, options)
            graph = (await reference.graph(judge)).graph
            region = region_of(graph, graph.node)
            bench = Bench(judge, None, python=sys.executable, cuda=cuda, deadline_s=10.0)
            good = [
                reported(name, await verify_region(bench, planted(folder, name, changes), region), expected)
                for name, (changes, expected) in CASES.items()
            ]
            verdict = await verify_program(bench, module, small_shapes=True)
            good.append(reported("a Python module", verdict, Category.CORRECT))
    return all(good)


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(run()) else 1)
