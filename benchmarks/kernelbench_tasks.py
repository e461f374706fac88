"""KernelBench tasks through `stitch --auto`: correctness, coverage, speedup, and why each miss is one.

``python benchmarks/kernelbench_tasks.py --kernelbench CHECKOUT --out FOLDER [--tasks level1/1_*.py ...]``.
CHECKOUT holds ``KernelBench/level1/*.py``; it is the user's, nothing of it is kept here.  One JSON a task
goes to FOLDER; a task that has one is not run again.  The table of all of them is
``benchmarks/results/kernelbench_emulator.json`` or ``..._cuda.json``.

On the emulator tasks run at reduced sizes (see `kernelbench_sizes`), with a GPU at full size.  Every program
that stitch calls correct is recomputed by `check_program` in a process of its own: where the two differ,
the verdict was wrong.
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import provenance
from kernelbench_sizes import Irreducible, reduced

from stitch_tui.agents import events
from stitch_tui.agents.state import Session, SubtaskState
from stitch_tui.tools.bundle import read_bundle
from stitch_tui.tools.bundle.emulation import emulated
from stitch_tui.tools.emulator import Emulator, Mode
from stitch_tui.tools.paths import cache_dir

HERE = Path(__file__).resolve().parent
CHECK_S = 300
VARIED = (
    "level1/1_*", "level1/3_*", "level1/6_*", "level1/12_*", "level1/16_*", "level1/19_*", "level1/21_*",
    "level1/23_*", "level1/26_*", "level1/33_*", "level1/35_*", "level1/36_*", "level1/40_*", "level1/42_*",
    "level1/47_*", "level1/49_*", "level1/50_*", "level1/56_*", "level1/63_*", "level1/67_*", "level1/78_*",
    "level1/82_*", "level1/87_*", "level1/88_*", "level1/89_*", "level1/94_*", "level2/1_*", "level2/9_*",
    "level2/12_*", "level2/21_*", "level2/26_*", "level2/29_*", "level2/37_*", "level2/56_*", "level2/70_*",
    "level2/76_*", "level3/1_*", "level3/4_*", "level3/15_*", "level3/43_*",
)  # fmt: skip
"""Forty tasks of all levels and kinds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kernelbench", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tasks", nargs="*", default=VARIED, help="patterns below KernelBench/")
    parser.add_argument("--device", default="emulator", choices=("emulator", "cuda"))
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one task")
    options = parser.parse_args()
    root = options.kernelbench / "KernelBench"
    root = root if root.is_dir() else options.kernelbench
    tasks = [path for pattern in options.tasks for path in sorted(root.glob(pattern))]
    if not tasks:
        parser.error(f"no task matches below {root}")
    options.out.mkdir(parents=True, exist_ok=True)
    for path in tasks:
        name = f"{path.parent.name}-{path.stem}"
        record = options.out / f"{name}.json"
        if not record.exists():
            result = {"task": name, **run_task(path, options.device, options.timeout)}
            draft = record.with_suffix(".part")
            draft.write_text(json.dumps(result, indent=1))
            os.replace(draft, record)
        print(line(json.loads(record.read_text())), flush=True)
    results = [json.loads(p.read_text()) for p in sorted(options.out.glob("*.json"))]
    provenance.write(f"kernelbench_{options.device}", summary(results, options.device))


def run_task(path: Path, device: str, timeout: float) -> dict[str, Any]:
    """One task in a project of its own, which is gone afterwards."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kernelbench-") as name:
        project = Path(name)
        source, cap = path.read_text(), None
        try:
            if device == "emulator":
                source, cap = reduced(source, project)
            (project / "task.py").write_text(source)
            session = session_of(project, device, timeout)
            check = recomputed(project, device) if session.program and session.program.correct else None
        except Irreducible as why:
            return {"status": "not run", "reason": str(why)}
        except subprocess.TimeoutExpired as late:
            return {"status": "timeout", "cap": cap, "reason": f"more than {late.timeout:g} s"}
    return {"cap": cap, "seconds": round(time.monotonic() - started, 1), **facts(session), "check": check}


def session_of(project: Path, device: str, timeout: float) -> Session:
    """The session that `stitch --auto` leaves, folded from its events."""
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    command = [sys.executable, "-m", "stitch_tui", "--auto", "task.py", "--json", "--device", device]
    done = subprocess.run(command, cwd=project, capture_output=True, timeout=timeout, check=False, env=_env())
    session = Session()
    for text in done.stdout.splitlines():
        session = events.parse(text).applied_to(session)
    if not session.reason:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        session = session.model_copy(update={"reason": f"exit {done.returncode}: {''.join(last)}"})
    return session


def _env() -> dict[str, str]:
    return (
        {**os.environ, "PYTHONPATH": str(HERE.parent)}
        if (HERE.parent / "agents").is_dir()
        else {**os.environ}
    )


def recomputed(project: Path, device: str) -> dict[str, Any]:
    """The best program's result against torch's, in a process that knows nothing of the session."""
    bundle = project / "stitched-check"
    export = [sys.executable, "-m", "stitch_tui", "export", str(bundle)]
    subprocess.run(export, cwd=project, check=True, capture_output=True, timeout=60, env=_env())
    kernels, more = project / "emulated", {}
    kernels.mkdir()
    if device == "emulator":
        emulator = Emulator(cache_dir() / "emulator")
        more = asyncio.run(emulated(read_bundle(bundle).kernels, emulator, kernels, mode=Mode.FAST))
    done = subprocess.run(
        [sys.executable, str(HERE / "check_program.py"), str(bundle)],
        capture_output=True, text=True, timeout=CHECK_S, check=False, env={**_env(), **more},
    )  # fmt: skip
    shutil.rmtree(kernels)
    if done.returncode != 0:
        return {"correct": False, "reason": (done.stderr.strip().splitlines() or ["died"])[-1]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def facts(session: Session) -> dict[str, Any]:
    """What the session says, and the reason for whatever is not covered."""
    plan, program = session.plan, session.program
    misses = (
        [f"{s.title}: {s.reason}" for s in plan.subtasks if s.state is not SubtaskState.DONE] if plan else []
    )
    misses += [f"{', '.join(u.nodes)}: {u.reason}" for u in plan.uncovered] if plan else []
    return {
        "status": str(session.status),
        "reason": session.reason,
        "subtasks": [s.title for s in plan.subtasks] if plan else [],
        "coverage": session.coverage,
        "correct": None if program is None else program.correct,
        "summary": "" if program is None else program.summary,
        "speedups": program.timing.model_dump(mode="json")["speedups"] if program and program.timing else {},
        "misses": misses,
    }


def line(result: dict[str, Any]) -> str:
    check = result.get("check")
    told = "correct" if result.get("correct") else "not correct"
    again = "" if check is None else ", recomputed: " + ("correct" if check["correct"] else "NOT CORRECT")
    coverage = result.get("coverage")
    part = "" if coverage is None else f", coverage {coverage:.0%}"
    return f"{result['task']}: {told}{again}{part}; {result.get('reason', '')}"


def summary(results: list[dict[str, Any]], device: str) -> dict[str, Any]:
    coverages = [r.get("coverage") or 0.0 for r in results]
    wrong = [r["task"] for r in results if r.get("check") and not r["check"]["correct"]]
    return {
        "benchmark": "kernelbench_tasks",
        "commit": provenance.commit(),
        "device": device,
        "versions": provenance.versions("torch"),
        "sizes": "reduced" if device == "emulator" else "full",
        "tasks": len(results),
        "correct": sum(bool(r.get("correct")) for r in results),
        "wrong_verdicts": wrong,
        "median_coverage": statistics.median(coverages) if coverages else None,
        "results": results,
    }


if __name__ == "__main__":
    main()
