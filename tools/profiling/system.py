"""The system profile of a candidate or of the reference: by nsys where it works, else by torch's profiler."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from stitch_tui.tools import process, scratch
from stitch_tui.tools.bench import Bench, Json
from stitch_tui.tools.errors import StitchError
from stitch_tui.tools.judge_start import BOOT
from stitch_tui.tools.profiling.chrome_trace import read_trace
from stitch_tui.tools.profiling.ncu_csv import Unreadable
from stitch_tui.tools.profiling.nsys import NsysAnswer, trace
from stitch_tui.tools.profiling.profile import Evidence, Trace
from stitch_tui.tools.profiling.spans import NoKernel, system_of
from stitch_tui.tools.scrub import reference_environment
from stitch_tui.tools.solo import Solo

RUNS = 10
"""Runs in a row that a trace holds, after one that warms up; fewer where they take long."""
RUNNING_SECONDS = 10.0
"""What those runs may take together; a program that takes longer for one of them is not traced."""
_UNFIT: dict[Path, str] = {}
"""An nsys that did not work in this process, and why: it is not tried again for each candidate."""
SECONDS = 120.0
"""For a process, or the judge's call, around them."""


def runs_of(seconds: float) -> int:
    """How many runs a trace shall hold of a program that takes so long for one; 0: none."""
    return int(min(RUNS, RUNNING_SECONDS / max(seconds, 1e-9)))


async def of_candidate(bench: Bench, alone: Solo, seconds: float) -> Trace:
    """Where a candidate's time goes, on warm caches and at its own pace.

    Args:
        seconds: that one run takes, about.
    """
    runs = runs_of(seconds)

    async def by_cupti(file: Path) -> None:
        await _left(alone.command(runs, file), alone.environment, file)

    async def by_nsys(nsys: Path, folder: Path) -> NsysAnswer:
        return await trace(nsys, alone.command(runs), alone.environment, folder)

    return await _traced(bench, runs, by_nsys, by_cupti)


async def of_reference(bench: Bench, options: Json, seconds: float) -> Trace:
    """Where the reference's time goes, at its own pace.

    Args:
        options: as the judge's method ``open`` takes them.
        seconds: that one pass takes, about.
    """
    runs = runs_of(seconds)
    command = [bench.python, str(BOOT), "forward", json.dumps(options), str(runs)]
    environment = _environment(bench)

    async def by_cupti(file: Path) -> None:
        await bench.judge.call("trace", {"file": str(file), "runs": runs}, timeout=SECONDS)

    async def by_nsys(nsys: Path, folder: Path) -> NsysAnswer:
        return await trace(nsys, command, environment, folder)

    return await _traced(bench, runs, by_nsys, by_cupti)


async def of_program(bench: Bench, options: Json, module: Path, seconds: float) -> Trace:
    """Where a stitched program's time goes, at its own pace.

    Args:
        options: of its reference, as the judge's method ``open`` takes them.
        module: ``model_new.py`` in its bundle.
        seconds: that one pass takes, about.
    """
    runs = runs_of(seconds)
    command = [bench.python, str(BOOT), "forward", json.dumps(options), str(runs), str(module.resolve())]
    environment = _environment(bench)

    async def by_cupti(file: Path) -> None:
        await _left([*command, str(file)], environment, file)

    async def by_nsys(nsys: Path, folder: Path) -> NsysAnswer:
        return await trace(nsys, command, environment, folder)

    return await _traced(bench, runs, by_nsys, by_cupti)


def _environment(bench: Bench) -> dict[str, str]:
    """Of the user's own code, which sees the GPU of the bench alone."""
    cuda = bench.cuda
    return reference_environment({"CUDA_VISIBLE_DEVICES": cuda.uuid} if cuda and cuda.uuid else {})


async def _left(command: Sequence[str], environment: Mapping[str, str], file: Path) -> None:
    """Run a process that leaves a trace in `file`.

    Raises:
        Unreadable: it left none.
    """
    done = await process.run(command, timeout=SECONDS, env=environment)
    if not file.exists():
        lines = (done.stderr or done.stdout).strip().splitlines() or ["it left no trace"]
        raise Unreadable(f"torch's profiler: {lines[-1][:200]}")


async def _traced(
    bench: Bench,
    runs: int,
    by_nsys: Callable[[Path, Path], Awaitable[NsysAnswer]],
    by_cupti: Callable[[Path], Awaitable[None]],
) -> Trace:
    """nsys first; what it cannot do is why torch's profiler is asked."""
    if not runs:
        return Trace(why=f"one run takes longer than {RUNNING_SECONDS:g} s")
    nsys = bench.cuda.toolkit.nsys if bench.cuda else None
    with scratch.folder("stitch-trace-") as folder:
        why = "nsys is not installed" if nsys is None else _UNFIT.get(nsys, "")
        if nsys is not None and not why:
            answer = await by_nsys(nsys, folder)
            if answer.unfit:
                _UNFIT[nsys] = answer.why
            try:
                if answer.spans is not None:
                    return Trace(system=system_of(answer.spans, runs), evidence=Evidence.NSYS)
                why = answer.why
            except NoKernel as reason:
                why = f"nsys: {reason}"
        file = folder / "trace.json"
        try:
            await by_cupti(file)
            return Trace(system=system_of(read_trace(file), runs), evidence=Evidence.CUPTI, why=why)
        except (Unreadable, NoKernel, StitchError, OSError) as reason:
            return Trace(why=f"{why}; {reason}")
