"""One GPU and several users of it: two engines, kernels that fault or hang, a stranger.  Needs a GPU.

``python benchmarks/shared_gpu.py`` writes ``results/shared_gpu.json``: every hold of the GPU's lease by two
engines that run side by side in two repositories, and whether a timing ever overlapped a hold of the
other's; the verdicts on candidates that hurt the GPU and on the honest one after each; what a timing says
of a stranger.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import provenance

sys.path.insert(0, str(provenance.ROOT))

from stitch_tui.agents.bench import open_bench
from stitch_tui.agents.settings import Settings
from stitch_tui.tools import bench as benches
from stitch_tui.tools.gpu import devices
from stitch_tui.tools.graph import region_of
from stitch_tui.tools.lease import Lease
from stitch_tui.tools.verification import verify_region

EXAMPLE = "layernorm_gelu"
HONEST = provenance.ROOT / "tests/tools/verification/candidates/linear_relu.cu"
REFERENCE = """
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(33, 7)
    def forward(self, x):
        return torch.relu(self.layer(x))
def get_inputs(): return [torch.rand(4000, 33)]
def get_init_inputs(): return []
"""
START = "  int i = at / columns, j = at % columns;\n"
HARMS = {
    "illegal address": "  *(volatile float*)8 = 1;\n",
    "misaligned": "  *(volatile double*)((char*)y + 4) = 1;\n",
    "trap": '  asm volatile("trap;");\n',
    "endless": "  for (volatile int turn = 0;; turn = 0) {}\n",
    "endless again": "  for (volatile int turn = 0;; turn = 0) {}\n",
}
STRANGER = (
    "import torch, time; x = torch.rand(4096, 4096, device='cuda'); print('computing', flush=True)\n"
    "while True: x @ x; torch.cuda.synchronize()"
)


class LoggedLease(Lease):
    """A lease whose holds are appended to a file: kind, purpose, begin and end in ns."""

    log = Path()

    @asynccontextmanager
    async def shared(self, purpose: str, *, timeout: float | None = None) -> AsyncIterator[None]:
        async with super().shared(purpose, timeout=timeout), self._noted("shared", purpose):
            yield

    @asynccontextmanager
    async def exclusive(self, purpose: str, *, timeout: float | None = None) -> AsyncIterator[None]:
        async with super().exclusive(purpose, timeout=timeout), self._noted("exclusive", purpose):
            yield

    @asynccontextmanager
    async def _noted(self, kind: str, purpose: str) -> AsyncIterator[None]:
        began = time.monotonic_ns()
        try:
            yield
        finally:
            with self.log.open("a") as log:
                print(json.dumps([kind, purpose, began, time.monotonic_ns()]), file=log)


def main() -> None:
    if sys.argv[1:2] == ["--engine"]:
        sys.exit(engine(Path(sys.argv[2])))
    found: dict[str, Any] = {
        "benchmark": "shared_gpu",
        "commit": provenance.commit(),
        "device": str(devices()[0]),
        "versions": provenance.versions("torch"),
        "two_engines": two_engines(),
    }
    provenance.write("shared_gpu", found)  # a fault in what follows does not lose it
    provenance.write("shared_gpu", found | asyncio.run(harms()))


def engine(log: Path) -> int:
    """``stitch --auto`` with its leases logged."""
    from stitch_tui.cli import invoke

    LoggedLease.log = log
    benches.Lease = LoggedLease  # type: ignore[misc]
    return invoke(["--auto", f"{EXAMPLE}.py", "--json", "--set", "limits.iterations=1"])


def two_engines() -> dict[str, Any]:
    """Two repositories, two engines, one GPU."""
    with tempfile.TemporaryDirectory() as root:
        logs, running = [], []
        for name in ("one", "two"):
            folder = Path(root) / name
            folder.mkdir()
            subprocess.run(["git", "init", "--quiet", folder], check=True)
            (folder / f"{EXAMPLE}.py").write_bytes((provenance.ROOT / f"examples/{EXAMPLE}.py").read_bytes())
            logs.append(folder / "leases.log")
            path = os.pathsep.join([str(provenance.ROOT), os.environ.get("PYTHONPATH", "")])
            argv = [sys.executable, str(Path(__file__).resolve()), "--engine", str(logs[-1])]
            running.append(
                subprocess.Popen(
                    argv, cwd=folder, env=os.environ | {"PYTHONPATH": path}, stdout=subprocess.PIPE
                )
            )
        ends = [json.loads(engine.communicate()[0].splitlines()[-1]) for engine in running]
        holds = [[json.loads(line) for line in log.read_text().splitlines()] for log in logs]
    overlaps = [
        [one, other]
        for one in holds[0]
        for other in holds[1]
        if "exclusive" in (one[0], other[0]) and one[2] < other[3] and other[2] < one[3]
    ]
    both = [1 for one in holds[0] for other in holds[1] if one[2] < other[3] and other[2] < one[3]]
    return {
        "ended": [end["reason"] for end in ends],
        "holds": [len(found) for found in holds],
        "timings": [sum(hold[0] == "exclusive" for hold in found) for found in holds],
        "shared_holds_side_by_side": len(both),
        "timings_beside_the_other": overlaps,
    }


async def harms() -> dict[str, Any]:
    """Verdicts on harmful candidates and on the honest one after each; then a timing beside a stranger."""
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        (folder / "model.py").write_text(REFERENCE)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        async with open_bench(folder, Settings(), "model.py") as opened:
            graph = opened.exported.graph
            region = region_of(graph, [node.id for node in graph.nodes])
            # without the emulator, which would find all of this before the GPU runs it
            bench = replace(opened.bench, deadline_s=10.0, emulator=None)
            found: dict[str, Any] = {}
            for name, harm in HARMS.items():
                source = folder / f"{name.split()[0]}.cu"
                source.write_text(HONEST.read_text().replace(START, harm + START))
                verdict = await verify_region(bench, source, region, time_it=False)
                honest = await verify_region(bench, HONEST, region, time_it=False)
                found[name] = [str(verdict.category), verdict.summary, str(honest.category)]
            argv = [sys.executable, "-c", STRANGER]
            stranger = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
            assert stranger.stdout
            await stranger.stdout.readline()
            beside = await verify_region(bench, HONEST, region)
            stranger.kill()
            await stranger.wait()
            alone = await verify_region(bench, HONEST, region)
    return {
        "harms": found,
        "stranger": {"pid": stranger.pid, "beside": beside.unchecked, "alone": alone.unchecked},
    }


if __name__ == "__main__":
    main()
