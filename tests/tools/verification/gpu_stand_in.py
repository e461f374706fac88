"""A stitched program that builds its kernels as on a GPU, on a machine without one.

A host compiler takes nvcc's place and says in a file what it builds; the judge's runners are real, on the
CPU, and its method ``time`` starts each contestant once and knows no times.

``gpu_stand_in.py FOLDER`` judges a program there and kills itself in the midst of it.
"""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from stitch_tui.tools import reference
from stitch_tui.tools.bench import Bench, Cuda, Json, OnEvent
from stitch_tui.tools.bundle import Kernel, Program, ReferenceSource, read_layout, render
from stitch_tui.tools.graph import region_of
from stitch_tui.tools.judge import Judge
from stitch_tui.tools.toolkit import Toolkit
from stitch_tui.tools.verdict import Verdict
from stitch_tui.tools.verification import verify_program

REFERENCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return torch.neg(torch.relu(x))
def get_inputs(): return [torch.randn(4, 16)]
def get_init_inputs(): return []
"""
SOURCE = """
#include "stitch.h"
extern "C" int stitch_run(const stitch_call* c) {
  const float* x = (const float*)c->in[0].data;
  float* y = (float*)c->out[0].data;
  for (int64_t i = 0; i < c->in[0].numel; i++) y[i] = VALUE;
  return STITCH_OK;
}
"""
KERNELS = {"relu": "x[i] < 0.0f ? 0.0f : x[i]", "neg": "-x[i]"}
ON_THE_HOST = """

def _load(self, device):
    kernels = self.program.kernels
    libraries = stitch_build(kernels, self.program.files, "sm_90a")
    return {
        kernel.id: StitchBinding(kernel, StitchLibrary(kernel, library, device), device)
        for kernel, library in zip(kernels, libraries, strict=True)
    }
StitchRuntime.load = _load
"""
"""Below a bundle's program: kernels are compiled and loaded as on a GPU."""
NVCC = """#!/bin/sh
[ "$1" = --version ] && echo stand-in 1 && exit
source=$1; shift
while [ $# -gt 0 ]; do
  case $1 in -I) folder=$2; shift;; -o) output=$2; shift;; esac; shift
done
grep -q 0xff "$source" && what=stub || what=$(basename "$source")
echo "$what $XDG_CACHE_HOME" >> {log}
exec {cxx} -x c++ -shared -fPIC -I "$folder" -I {include} "$source" -o "$output"
"""
RUNTIME = """#include <string.h>
typedef void* cudaStream_t;
static inline int cudaMemsetAsync(void* to, int value, size_t n, cudaStream_t) {
  memset(to, value, n);
  return 0;
}
"""


def install_nvcc(root: Path, log: Path) -> Path:
    """Make a toolkit whose nvcc appends to `log` what it builds and for which cache; returns where it lies.

    `log` has to lie below ``/dev``, the one place elsewhere that a runner may write.
    """
    cxx = shutil.which("c++") or shutil.which("g++")
    if cxx is None:
        pytest.skip("no C++ compiler")
    for name in ("bin", "include", "nvvm"):
        (root / name).mkdir(parents=True)
    (root / "include" / "cuda_runtime.h").write_text(RUNTIME)
    (root / "bin" / "nvcc").write_text(NVCC.format(log=log, cxx=cxx, include=root / "include"))
    (root / "bin" / "nvcc").chmod(0o755)
    return root / "bin"


@dataclass
class HostGpu:
    """A judge whose runners stay on the CPU whatever the engine asks for; `JudgeCall`."""

    judge: Judge
    before_times: Callable[[], None] = lambda: None
    caches: list[str] = field(default_factory=list)
    """Of each runner that was asked for."""

    async def call(
        self, method: str, params: Json | None = None, *, timeout: float, on_event: OnEvent | None = None
    ) -> Any:
        params = dict(params or {})
        if method == "time":
            self.before_times()
            contestants = {"candidate": params["runner"], **params["rivals"]}
            for runner in contestants.values():
                await self._check(params["target"], runner, {"small": [], "distributions": False}, timeout)
            return {
                "category": "correct",
                "findings": [],
                "unchecked": [],
                "notes": [],
                "blocks": {name: [[2.0, 2.0], [2.0, 2.0]] for name in contestants},
                "baselines": [],
                "lower_precision": [],
                "bind_us": None,
                "environment": {},
            }
        if method == "check":
            return await self._check(params["target"], params["runner"], params["trials"], timeout)
        return await self.judge.call(method, params, timeout=timeout, on_event=on_event)

    async def _check(self, target: Json, runner: Json, trials: Json, timeout: float) -> Any:
        self.caches.append(runner["cache"])
        here = {"argv": [*runner["argv"][:-1], "cpu"], "device": "cpu"}
        params = {"target": target, "runner": runner | here, "trials": trials}
        return await self.judge.call("check", params, timeout=timeout)


async def judged(folder: Path, before_times: Callable[[], None] = lambda: None) -> tuple[Verdict, list[str]]:
    """The verdict on a program that replaces another one, and the cache of each runner."""
    (folder / "model.py").write_text(REFERENCE)
    async with Judge(sys.executable, folder) as judge:
        summary = await reference.open_reference(judge, reference.ReferenceOptions(path="model.py"))
        graph = (await reference.graph(judge)).graph
        kernels = []
        for node, (name, value) in zip(graph.nodes, KERNELS.items(), strict=True):
            assert name in node.op
            source, region = SOURCE.replace("VALUE", value), region_of(graph, [node.id])
            kernels.append(Kernel(id=name, title=name, region=region, source=source))
        program = Program(
            graph=graph,
            kernels=tuple(kernels),
            reference=ReferenceSource(text=summary.source, class_name=summary.class_name),
            **dict(await read_layout(judge)),
        )
        modules = [written(program, folder / name) for name in ("candidate", "replaced")]
        files = {f"{name}.cu": modules[0].parent / "kernels" / f"{name}.cu" for name in KERNELS}
        gpu = HostGpu(judge, before_times)
        bench = Bench(
            gpu, None, python=sys.executable, cuda=Cuda("stand-in", "sm_90", Toolkit(), folder / "builds")
        )
        verdict = await verify_program(bench, modules[0], files, replaces=modules[1])
        return verdict, gpu.caches


def written(program: Program, folder: Path) -> Path:
    """Its bundle's ``model_new.py``, which builds for the host."""
    for path, data in render(program).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    module = folder / "model_new.py"
    module.write_text(module.read_text() + ON_THE_HOST)
    return module


if __name__ == "__main__":
    asyncio.run(judged(Path(sys.argv[1]), lambda: os.kill(os.getpid(), signal.SIGKILL)))
