"""Are profiles what the profilers themselves say?  Three examples, our reading beside their own summaries.

``python benchmarks/profiles.py`` needs an NVIDIA GPU and nsys.  It prints a line for each example, writes
``benchmarks/results/profiles.json`` and ends with 1 when a sum differs from ``nsys stats`` by more than 1 %.
"""

import asyncio
import csv
import io
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import provenance

from stitch_tui.tools import process, reference
from stitch_tui.tools.bench import Bench, Cuda
from stitch_tui.tools.gpu import devices
from stitch_tui.tools.judge import BOOT, Judge
from stitch_tui.tools.profiling.nsys import trace
from stitch_tui.tools.profiling.profile import Trace
from stitch_tui.tools.profiling.spans import system_of
from stitch_tui.tools.profiling.system import RUNS, of_reference
from stitch_tui.tools.scrub import reference_environment
from stitch_tui.tools.toolkit import find_toolkit

ROOT = Path(__file__).parents[1]
EXAMPLES = ("gated_mlp", "layernorm_gelu", "small_cnn")
TOLERANCE = 0.01


def main() -> int:
    result = asyncio.run(run())
    provenance.write("profiles", result)
    return 0 if result["passed"] else 1


async def run() -> dict[str, Any]:
    gpu, toolkit = devices()[0], await find_toolkit()
    rows = []
    for name in EXAMPLES:
        cuda = Cuda(gpu.name, gpu.arch, toolkit, Path(tempfile.gettempdir()), uuid=gpu.uuid)
        row = await compared(cuda, name)
        rows.append(row)
        print(json.dumps(row), flush=True)
    return {
        "benchmark": "profiles",
        "commit": provenance.commit(),
        "device": str(gpu),
        "nsys": str(toolkit.nsys),
        "versions": provenance.versions("torch"),
        "passed": all(row["ok"] for row in rows),
        "examples": rows,
    }


async def compared(cuda: Cuda, name: str) -> dict[str, Any]:
    """One example by nsys, with nsys's own sums, and by CUPTI."""
    options = reference.ReferenceOptions(path=f"examples/{name}.py", device="cuda:0")
    given = reference.parameters(options, ROOT)
    nsys = cuda.toolkit.nsys
    assert nsys
    environment = reference_environment({"CUDA_VISIBLE_DEVICES": cuda.uuid})
    with tempfile.TemporaryDirectory() as made:
        command = [sys.executable, str(BOOT), "forward", json.dumps(given), str(RUNS)]
        answer = await trace(nsys, command, environment, Path(made))
        if answer.spans is None:
            return {"example": name, "ok": False, "why": answer.why}
        ours = sum(kernel.us for kernel in answer.spans.kernels)
        theirs = await sums(nsys, Path(made) / "run.sqlite")
    by_nsys = system_of(answer.spans, RUNS)
    started = time.monotonic()
    async with Judge(sys.executable, ROOT) as judge:
        await reference.open_reference(judge, options)
        opened = time.monotonic()
        without = replace(cuda, toolkit=replace(cuda.toolkit, nsys=None))
        by_cupti = await of_reference(Bench(judge, None, python=sys.executable, cuda=without), given, 0.0)
        asked = time.monotonic()
    same_time = abs(ours - theirs["us"]) <= TOLERANCE * theirs["us"]
    return {
        "example": name,
        "ok": same_time and theirs["count"] == len(answer.spans.kernels),
        "kernels_us": round(ours, 2),
        "kernels_us_by_nsys_stats": round(theirs["us"], 2),
        "launches": len(answer.spans.kernels),
        "launches_by_nsys_stats": theirs["count"],
        "nsys": told(Trace(system=by_nsys)) | {"seconds": round(answer.seconds, 1)},
        "cupti": told(by_cupti) | {"seconds": round(asked - opened, 1)},
        "open_seconds": round(opened - started, 1),
    }


def told(found: Trace) -> dict[str, Any]:
    if found.system is None:
        return {"why": found.why}
    system = found.system
    return {
        "wall_us": round(system.wall_us, 1),
        "busy_share": round(system.busy_share, 3),
        "launches": system.launches,
        "launch_us": round(system.launch_us, 1),
        "why": found.why,
    }


async def sums(nsys: Path, database: Path) -> dict[str, float]:
    """Time and launches of all kernels, by ``nsys stats``."""
    argv = [str(nsys), "stats", "--report", "cuda_gpu_kern_sum", "--format", "csv", str(database)]
    text = (await process.run(argv, timeout=60)).stdout
    lines = text.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("Time (%)"))
    rows = [row for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))) if row.get("Instances")]
    return {
        "us": sum(float(row["Total Time (ns)"]) for row in rows) / 1e3,
        "count": sum(int(row["Instances"]) for row in rows),
    }


if __name__ == "__main__":
    sys.exit(main())
