"""How long does ``stitch selftest`` take, and does it pass?

``python benchmarks/selftest.py [--device cuda] [--warm]`` writes
``benchmarks/results/selftest_cpu.json`` or ``selftest_cuda.json`` and ends with 1 when a row is wrong or it
took too long.  Caches are empty at the start, as on a machine that never ran it; ``--warm`` leaves the
user's.  On a machine with other work (``load``) the CPU seconds tell what the wall clock cannot.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

import provenance

from stitch_tui.tools.gpu import devices

LIMIT_S = {"cpu": 180.0, "cuda": 300.0}
COMMAND = (sys.executable, "-m", "stitch_tui", "selftest", "--json", "--device")
KINDS = {"cpu": "emulator", "cuda": "cuda"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--warm", action="store_true", help="with what the user's caches hold")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ) if options.warm else os.environ | {"XDG_CACHE_HOME": folder}
        result = measured(options.device, environment, folder)
    result["caches"] = "warm" if options.warm else "empty"
    provenance.write(f"selftest_{options.device}", result)
    return 0 if result["passed"] and result["in_time"] else 1


def measured(device: str, environment: dict[str, str], folder: str) -> dict[str, Any]:
    """One run; CPU seconds of it and all that it started."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [*COMMAND, KINDS[device]]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if not done.stdout.strip():
        raise SystemExit(done.stderr)
    report = json.loads(done.stdout)
    return {
        "benchmark": "selftest",
        "commit": provenance.commit(),
        "machine": provenance.processor(),
        "device": str(devices()[0]) if device == "cuda" else report["device"],
        "load": [round(value, 1) for value in os.getloadavg()],
        "versions": provenance.versions("torch"),
        "seconds": round(wall, 1),
        "cpu_seconds": round(cpu, 1),
        "limit_seconds": LIMIT_S[device],
        "in_time": wall < LIMIT_S[device],
        "passed": report["passed"],
        "rows": [row | {"seconds": round(row["seconds"], 1)} for row in report["rows"]],
    }


if __name__ == "__main__":
    sys.exit(main())
