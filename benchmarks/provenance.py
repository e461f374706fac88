"""What a figure was measured on: commit, device, versions; and the one place that writes results."""

import json
import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


@cache
def commit() -> str:
    """The checkout's commit, ``-dirty`` when tracked files differ from it.

    Asked once: writing results makes a checkout dirty.  The variable BENCHMARK_COMMIT is believed first: a
    checkout that travelled to a machine with a GPU may have no history there, or an older one.
    """
    if named := os.environ.get("BENCHMARK_COMMIT"):
        return named
    words = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    done = subprocess.run(words, cwd=ROOT, check=False, capture_output=True, text=True)
    return done.stdout.strip()


def processor() -> str:
    """The CPU's model, as Linux names it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {len(names)} cores"


def versions(*packages: str) -> dict[str, str]:
    """Installed versions of Python and of the packages that are there."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def write(name: str, result: dict[str, Any], *, shown: bool = True) -> Path:
    """``benchmarks/results/NAME.json``, also printed unless it is not yet whole."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    if shown:
        print(json.dumps(result, indent=1))
    return path
