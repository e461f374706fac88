"""KernelBench tasks through ``stitch --auto``: correctness, coverage, speedup, and why each miss is one.

``python benchmarks/kernelbench_tasks.py --kernelbench CHECKOUT --out FOLDER [--tasks 'level1/1_*' ...]``.
CHECKOUT holds ``KernelBench/level1/*.py``; it is the user's, nothing of it is kept here.  One JSON a task
goes to FOLDER; a task that has one is not run again, nor (without ``--again``) one that the results say was
correct.  All together are ``results/kernelbench_emulator.json`` or ``..._cuda.json``; `kernelbench_table`
shows them.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any

import provenance
from kernelbench_sizes import Irreducible, reduced

from stitch_tui.agents import events
from stitch_tui.agents.state import Iteration, Session, Subtask
from stitch_tui.tools.bundle import read_bundle
from stitch_tui.tools.bundle.emulation import emulated
from stitch_tui.tools.emulator import Emulator
from stitch_tui.tools.gpu import devices
from stitch_tui.tools.iteration import Outcome
from stitch_tui.tools.lease import Lease
from stitch_tui.tools.paths import cache_dir
from stitch_tui.tools.verdict import Timing

CHECK_S = 300
VARIED = (
    "level1/19_*", "level1/21_*", "level1/26_*", "level1/23_*", "level1/12_*", "level1/88_*", "level1/36_*",
    "level1/40_*", "level1/35_*", "level1/33_*", "level1/47_*", "level1/49_*", "level1/42_*", "level1/89_*",
    "level1/94_*", "level1/1_*", "level1/3_*", "level1/6_*", "level1/16_*", "level2/12_*", "level2/29_*",
    "level2/9_*", "level2/76_*", "level2/56_*", "level2/70_*", "level2/37_*", "level3/1_*", "level1/87_*",
    "level1/67_*", "level1/82_*", "level1/50_*", "level1/56_*", "level1/63_*", "level1/78_*", "level2/1_*",
    "level2/21_*", "level1/95_*", "level1/98_*", "level3/4_*", "level3/8_*",
)  # fmt: skip
"""Forty tasks of all levels and kinds, those that take least first."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kernelbench", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tasks", nargs="*", default=VARIED, help="patterns below KernelBench/")
    parser.add_argument("--device", default="emulator", choices=("emulator", "cuda"))
    parser.add_argument("--again", action="store_true", help="also what the results say was correct")
    parser.add_argument("--jobs", type=int, default=1, help="tasks side by side; they lease the GPU")
    parser.add_argument("--iterations", type=int, default=4, help="attempts for each subtask")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one task")
    parser.add_argument(
        "--budget", type=float, default=float("inf"), help="begin no task after these seconds"
    )
    options = parser.parse_args()
    root = options.kernelbench / "KernelBench"
    root = root if root.is_dir() else options.kernelbench
    tasks = [path for pattern in options.tasks for path in sorted(root.glob(pattern))]
    if not tasks:
        parser.error(f"no task matches below {root}")
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.again:
        take_up(provenance.RESULTS / f"kernelbench_{options.device}.json", options.out)
    asyncio.run(run_all(tasks, options))
    results = [json.loads(p.read_text()) for p in sorted(options.out.glob("*.json"))]
    provenance.write(f"kernelbench_{options.device}", summary(results, options.device))


def take_up(results: Path, out: Path) -> None:
    """Records of the tasks that earlier runs found correct, where `out` has none."""
    known = json.loads(results.read_text())["results"] if results.exists() else []
    for result in known:
        record = out / f"{result['task']}.json"
        if result.get("correct") and not record.exists():
            record.write_text(json.dumps(result, indent=1))


async def run_all(tasks: list[Path], options: argparse.Namespace) -> None:
    """Every task that has no record yet, `options.jobs` at a time."""
    free, started = asyncio.Semaphore(options.jobs), time.monotonic()

    async def one(path: Path) -> None:
        name = f"{path.parent.name}-{path.stem}"
        record = options.out / f"{name}.json"
        async with free:
            if not record.exists() and time.monotonic() - started < options.budget:
                stamp = {"commit": provenance.commit(), "versions": provenance.versions("torch", "triton")}
                result = {"task": name, **stamp, **await run_task(path, options)}
                draft = record.with_suffix(".part")
                draft.write_text(json.dumps(result, indent=1))
                os.replace(draft, record)
        if record.exists():
            print(line(json.loads(record.read_text())), flush=True)

    async with asyncio.TaskGroup() as group:
        for path in tasks:
            group.create_task(one(path))


async def run_task(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One task in a project of its own, which is gone afterwards."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kernelbench-") as name:
        project = Path(name)
        source, cap = path.read_text(), None
        try:
            if options.device == "emulator":
                source, cap = await asyncio.to_thread(reduced, source, project)
        except Irreducible as why:
            return {"status": "not run", "reason": str(why)}
        (project / "task.py").write_text(source)
        try:
            session = await session_of(project, options)
        except TimeoutError:
            return {"status": "timeout", "cap": cap, "reason": f"more than {options.timeout:g} s"}
        taken = time.monotonic() - started
        correct = session.program is not None and session.program.correct
        check = await recomputed(project, options.device) if correct else None
    return {"cap": cap, "seconds": round(taken, 1), **facts(session), "check": check}


async def session_of(project: Path, options: argparse.Namespace) -> Session:
    """The session that `stitch --auto` leaves, folded from its events.

    Raises:
        TimeoutError: it takes longer than `options.timeout`.
    """
    await finished("git", "init", "-q", cwd=project)
    words = ["--auto", "task.py", "--json", "--device", options.device]
    limits = {"iterations": options.iterations, "minutes": options.timeout / 60}
    settings = [f"--set=limits.{name}={value}" for name, value in limits.items()]
    command = [sys.executable, "-m", "stitch_tui", *words, *settings]
    code, out, err = await finished(*command, cwd=project, timeout=options.timeout + 60)
    session = Session()
    for text in out.splitlines():
        session = events.parse(text).applied_to(session)
    if not session.reason:
        last = err.decode(errors="replace").strip().splitlines()[-1:]
        session = session.model_copy(update={"reason": f"exit {code}: {''.join(last)}"})
    return session


async def finished(
    *command: str, cwd: Path, timeout: float = 60.0, more: dict[str, str] | None = None
) -> tuple[int, bytes, bytes]:
    """Exit code, stdout and stderr of a process that sees this checkout; it is killed when it is late.

    Raises:
        TimeoutError: it did not end in time.
    """
    path = os.pathsep.join([str(provenance.ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, **(more or {})},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), timeout)
    except TimeoutError:
        process.terminate()
        await process.wait()
        raise
    assert process.returncode is not None
    return process.returncode, out, err


async def recomputed(project: Path, device: str) -> dict[str, Any]:
    """The best program's result against torch's, in a process that knows nothing of the session."""
    bundle, kernels = project / "stitched-check", project / "emulated"
    export = [sys.executable, "-m", "stitch_tui", "export", str(bundle)]
    await finished(*export, cwd=project, timeout=CHECK_S)
    kernels.mkdir()
    command = [sys.executable, str(provenance.ROOT / "benchmarks" / "check_program.py"), str(bundle)]
    more = {}
    if device == "emulator":
        sources = {k.file: bundle / "kernels" / k.file for k in read_bundle(bundle).kernels if k.source}
        more = (await emulated(sources, Emulator(cache_dir("emulator")), kernels)).environment
    try:
        async with leased(device):
            code, out, err = await finished(*command, cwd=project, timeout=CHECK_S, more=more)
    except TimeoutError:
        return {"correct": None, "reason": f"not recomputed: more than {CHECK_S} s"}
    if code != 0:
        last = (err.decode(errors="replace").strip().splitlines() or ["died"])[-1]
        return {"correct": None, "reason": f"not recomputed: {last}"}
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def leased(device: str) -> AbstractAsyncContextManager[None]:
    """The right to use the GPU beside other checks, so that no session's timing is disturbed."""
    return nullcontext() if device == "emulator" else Lease(devices()[0].uuid).shared("recomputing a program")


def facts(session: Session) -> dict[str, Any]:
    """What the session says, and the reason for whatever is not covered."""
    plan, program = session.plan, session.program
    misses = [f"{s.title}: {reason_of(session, s)}" for s in session.subtasks if s.best is None]
    misses += [f"{', '.join(u.nodes)}: {u.reason}" for u in plan.uncovered] if plan else []
    return {
        "status": str(session.status),
        "reason": session.reason,
        "device": session.device,
        "subtasks": [told(session, s) for s in session.subtasks],
        "coverage": session.coverage,
        "correct": None if program is None else program.correct,
        "slower": slower(session),
        "summary": "" if program is None else program.summary,
        "timing": timed(program.timing if program else None),
        "misses": misses,
    }


def slower(session: Session) -> bool:
    """Whether every subtask has a correct kernel, and PyTorch is faster than all of them."""
    judged = [[a.verdict for a in session.attempts_of(s.id) if a.verdict] for s in session.subtasks]
    found = bool(judged) and all(any(v.correct for v in verdicts) for verdicts in judged)
    return found and all(s.best is None for s in session.subtasks)


def told(session: Session, subtask: Subtask) -> dict[str, Any]:
    """What became of a subtask; times in microseconds."""
    best = session.best_of(subtask) or _fastest(session, subtask)
    verdict = best.verdict if best else None
    return {
        "title": subtask.title,
        "share": subtask.share,
        "state": str(subtask.state),
        "strategy": best.candidate.strategy if best and best.candidate else "",
        "attempts": len(session.attempts_of(subtask.id)),
        "timing": timed(verdict.timing if verdict else None),
    }


def _fastest(session: Session, subtask: Subtask) -> Iteration | None:
    """The best correct attempt at a subtask that was left to PyTorch."""
    kept = [a for a in session.attempts_of(subtask.id) if a.outcome is Outcome.KEPT]
    return kept[-1] if kept else None


def reason_of(session: Session, subtask: Subtask) -> str:
    """Why a subtask has no kernel: what its last verdict found, else how it ended."""
    verdicts = [a.verdict for a in session.attempts_of(subtask.id) if a.verdict]
    if any(v.correct for v in verdicts) or not verdicts:
        return subtask.reason
    return f"{verdicts[-1].category}: {verdicts[-1].summary}"


def timed(timing: Timing | None) -> dict[str, Any]:
    """Median times in microseconds and speedups with their intervals; empty when nothing was timed."""
    if timing is None:
        return {}
    medians = {"candidate": timing.candidate, **timing.baselines}
    return {
        "time_us": {name: sample.median_us for name, sample in medians.items()},
        "speedups": timing.model_dump(mode="json")["speedups"],
    }


def line(result: dict[str, Any]) -> str:
    """One task for the eye."""
    check = result.get("check")
    verdict = "correct" if result.get("correct") else "slower" if result.get("slower") else "not correct"
    again = {None: "not done", True: "correct", False: "NOT CORRECT"}[check["correct"] if check else None]
    coverage = result.get("coverage")
    part = "" if coverage is None else f", coverage {coverage:.0%}"
    speedups = result.get("timing", {}).get("speedups", {})
    fast = "".join(f", {ratio['value']:.2f}x over {name}" for name, ratio in speedups.items())
    seconds = f"{result.get('seconds', 0):.0f} s"
    return f"{result['task']}: {verdict}, recomputed: {again}{part}{fast} ({seconds}); {result['reason']}"


def summary(results: list[dict[str, Any]], device: str) -> dict[str, Any]:
    """All tasks, and the figures that the whole is judged by."""
    coverages = [r.get("coverage") or 0.0 for r in results]
    checks = {r["task"]: r["check"]["correct"] for r in results if r.get("check")}
    named = next((r["device"] for r in results if r.get("device")), device)
    return {
        "benchmark": "kernelbench_tasks",
        "device": f"emulator, {provenance.processor()}" if device == "emulator" else named,
        "sizes": "reduced" if device == "emulator" else "full",
        "tasks": len(results),
        "correct": sum(bool(r.get("correct")) for r in results),
        "correct_but_slower": sum(bool(r.get("slower")) for r in results),
        "recomputed": sum(found is not None for found in checks.values()),
        "wrong_verdicts": [task for task, found in checks.items() if found is False],
        "median_coverage": statistics.median(coverages) if coverages else None,
        "results": results,
    }


if __name__ == "__main__":
    main()
