"""How long `stitch` takes to start, as a ratio to an empty typer application's `--help`.

``python benchmarks/startup.py [RUNS]`` in an environment that has stitch installed writes
``benchmarks/results/startup.json``.  Runs are interleaved, so that a busy machine slows all alike.
"""

import os
import statistics
import subprocess
import sys
import time

from provenance import ROOT, commit, processor, versions, write

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
        "versions": versions("typer", "pydantic"),
        "load": round(os.getloadavg()[0], 1),
        "runs": len(next(iter(times.values()))),
        "median_ms": {name: round(1e3 * value, 1) for name, value in medians.items()},
        "ratio": {name: round(value / base, 2) for name, value in medians.items()},
    }


def main() -> None:
    result = report(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 15))
    write("startup", result)


if __name__ == "__main__":
    main()
