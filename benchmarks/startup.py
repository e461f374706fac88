"""How long `stitch` takes to start, as a ratio to an empty typer application's `--help`.

``python benchmarks/startup.py [RUNS]`` in an environment that has stitch installed writes
``benchmarks/results/startup.json``.  Runs are interleaved, so that a busy machine slows all alike.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks/results/startup.json"

EMPTY = """
import typer
app = typer.Typer(rich_markup_mode=None)
@app.command()
def main() -> None: ...
app(["--help"])
"""
CALL = "import sys; sys.argv[1:] = {}; from stitch_tui.cli import main; main()"
PROGRAMS = {
    "empty typer app --help": EMPTY,
    "stitch --help": CALL.format(["--help"]),
    "stitch config path": CALL.format(["config", "path"]),
    "import stitch_tui.cli": "import stitch_tui.cli",
}


def seconds(program: str) -> float:
    """Wall time of one run, the interpreter's start included."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    return time.perf_counter() - started


def measure(runs: int) -> dict[str, list[float]]:
    """Wall times by program; the first round warms the disk and is dropped."""
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for round_ in range(runs + 1):
        for name, program in PROGRAMS.items():
            taken = seconds(program)
            if round_:
                times[name].append(taken)
    return times


def report(times: dict[str, list[float]]) -> dict[str, object]:
    """Medians in ms and ratios to the empty application, with what they were measured on."""
    medians = {name: statistics.median(values) for name, values in times.items()}
    base = medians["empty typer app --help"]
    return {
        "benchmark": "startup",
        "commit": commit(),
        "device": processor(),
        "versions": {
            "python": platform.python_version(),
            "typer": version("typer"),
            "pydantic": version("pydantic"),
        },
        "load": round(os.getloadavg()[0], 1),
        "runs": len(next(iter(times.values()))),
        "median_ms": {name: round(1e3 * value, 1) for name, value in medians.items()},
        "ratio": {name: round(value / base, 2) for name, value in medians.items()},
    }


def commit() -> str:
    """The checkout's commit, ``-dirty`` when tracked files differ from it."""
    words = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def processor() -> str:
    """The CPU's model, as Linux names it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {len(names)} cores"


def main() -> None:
    result = report(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 15))
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
