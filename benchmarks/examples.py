"""The examples through ``stitch --auto``: correctness, coverage, and on a GPU speedups with intervals.

``python benchmarks/examples.py [NAME ...] [--iterations N] [--jobs N]`` writes
``results/examples_<device>.json`` beside itself (merging: an example that is not named keeps its figures),
and the README's table is made from it by ``python benchmarks/examples.py --table``.
"""

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import provenance

EXAMPLES = provenance.ROOT / "examples"
BASELINES = ("eager", "compile", "compile-reduce-overhead")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="stems of files in examples/; default: all")
    parser.add_argument("--iterations", type=int, default=4, help="attempts for each subtask")
    parser.add_argument("--seconds", type=float, default=600.0, help="longest time for one example")
    parser.add_argument(
        "--jobs", type=int, default=1, help="sessions side by side; they lease the GPU to time"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of stitch")
    parser.add_argument("--events", type=Path, help="a folder for the sessions' events")
    parser.add_argument("--table", action="store_true", help="print the README's figures and stop")
    options = parser.parse_args()
    if options.table:
        print(section())
        return 0
    names = options.names or sorted(path.stem for path in EXAMPLES.glob("*.py"))
    asyncio.run(run_all(names, options))
    return 0


async def run_all(names: list[str], options: argparse.Namespace) -> None:
    free = asyncio.Semaphore(options.jobs)

    async def one(name: str) -> None:
        async with free:
            record(await run(name, options))

    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(one(name))


async def run(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """One example in a repository of its own; what its events tell."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{name}.py"
        source.write_bytes((EXAMPLES / f"{name}.py").read_bytes())
        made = await asyncio.create_subprocess_exec("git", "init", "--quiet", folder)
        assert await made.wait() == 0
        command = [sys.executable, "-m", "stitch_tui", "--auto", source.name, "--json"]
        limits = [f"limits.iterations={options.iterations}", f"limits.minutes={options.seconds / 60}"]
        command += [f"--set={setting}" for setting in (*limits, *options.set)]
        kept = (options.events or Path(folder)) / f"{name}.jsonl"
        kept.parent.mkdir(parents=True, exist_ok=True)
        started = time.perf_counter()
        path = os.pathsep.join([str(provenance.ROOT), os.environ.get("PYTHONPATH", "")])
        with kept.open("wb") as out:  # a session that is killed leaves what it has said
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": path},
                stdout=out,
                stderr=asyncio.subprocess.PIPE,
            )
            _, err = await process.communicate()
        taken = time.perf_counter() - started
        events = [json.loads(line) for line in kept.read_text().splitlines()]
    if not events:
        raise SystemExit(f"{name}: {err.decode(errors='replace')}")
    return {"name": name, "exit_code": process.returncode, "seconds": round(taken, 1), **told(events)}


def told(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Device, subtasks and program of a session, from its events."""
    started = next(e for e in events if e["type"] == "session.started")
    plan = next((e["plan"] for e in events if e["type"] == "plan.proposed"), {"subtasks": []})
    verdicts = [e for e in events if e["type"] == "verdict"]
    finished = events[-1]
    rows = []
    for subtask in plan["subtasks"]:
        mine = [e for e in verdicts if e["subtask"] == subtask["id"]]
        kept = [e for e in mine if e["outcome"] == "kept"]
        shown = (kept or mine or [None])[-1]
        row = {
            "id": subtask["id"],
            "title": subtask["title"],
            "share": subtask["share"],
            "attempts": len(mine),
        }
        rows.append(row | (judged(shown["verdict"]) if shown else {}))
    program = [e for e in verdicts if not e["subtask"]]
    return {
        "device": started["device"],
        "reason": finished.get("reason", ""),
        "coverage": finished.get("coverage"),
        "subtasks": rows,
        "program": judged(program[-1]["verdict"]) if program else None,
    }


def judged(verdict: dict[str, Any]) -> dict[str, Any]:
    timing = verdict["timing"] or {}
    return {
        "category": verdict["category"],
        "error": verdict["error"],
        "error_limit": verdict["error_limit"],
        "time_us": timing.get("candidate", {}).get("median_us"),
        "baseline_us": {name: s["median_us"] for name, s in timing.get("baselines", {}).items()},
        "speedup": timing.get("speedups", {}),
        "unchecked": verdict["unchecked"],
    }


def record(result: dict[str, Any]) -> None:
    """Put one example's figures into the device's file."""
    name = f"examples_{re.sub(r'[^a-z0-9]+', '_', result['device'].lower()).strip('_')}"
    path = provenance.RESULTS / f"{name}.json"
    known = json.loads(path.read_text())["examples"] if path.exists() else {}
    stamp = {"commit": provenance.commit(), "versions": provenance.versions("torch", "triton")}
    device = result["device"] if result["device"] != "emulator" else f"emulator, {provenance.processor()}"
    provenance.write(
        name,
        {
            "benchmark": "examples",
            "device": device,
            "examples": {**known, result["name"]: {**stamp, **result}},
        },
    )


def table() -> str:
    """Markdown, from every result file; the speedup of the whole program, the interval in brackets."""
    lines = [
        "| example | device | program | coverage | over eager | over torch.compile | over reduce-overhead"
        " | commit |"
    ]
    lines += [f"|{' --- |' * 8}"]
    for path in sorted(provenance.RESULTS.glob("examples_*.json")):
        found = json.loads(path.read_text())
        for name, example in sorted(found["examples"].items()):
            program = example["program"] or {"category": "not judged", "speedup": {}}
            cells = [ratio(program["speedup"].get(baseline)) for baseline in BASELINES]
            coverage = "" if example["coverage"] is None else f"{example['coverage']:.0%}"
            device = "emulator" if found["device"].startswith("emulator") else found["device"]
            row = (name, device, program["category"], coverage, *cells, example["commit"])
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def notes() -> str:
    """What is to be known of single rows."""
    results = [json.loads(path.read_text()) for path in sorted(provenance.RESULTS.glob("examples_*.json"))]
    examples = [example for found in results for example in found["examples"].values()]
    return " ".join(f"{each['name']}: {each['note']}." for each in examples if each.get("note"))


def latency() -> str:
    """The sentence on `benchmarks/edit_to_verdict.py`'s figures."""
    found = json.loads((provenance.RESULTS / "edit_to_verdict.json").read_text())
    ours, peer = found["median_s"]["stitch"], found["median_s"]["kernelbench"]
    runs, peer_runs = len(found["stitch"]), len(found["kernelbench"])
    return (
        f"From an edited `.cu` to the full verdict: {ours:.1f} s (median of {runs}, judge warm);"
        f" KernelBench's evaluator on the equivalent candidate in the same run: {peer:.0f} s"
        f" ({peer_runs} run). {found['device']}, commit {found['commit']}."
    )


def section() -> str:
    """What stands between the README's marks."""
    return "\n\n".join(part for part in (table(), notes(), latency()) if part)


def ratio(speedup: dict[str, float] | None) -> str:
    if speedup is None:
        return "not timed"
    return f"{speedup['value']:.2f}x [{speedup['low']:.2f}, {speedup['high']:.2f}]"


if __name__ == "__main__":
    sys.exit(main())
