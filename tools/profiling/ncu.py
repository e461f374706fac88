"""Nsight Compute over one candidate: chosen metrics of its kernels, the report kept on disk.

ncu replays each kernel once a pass, with caches flushed before (its default) and clocks left alone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools import process, scratch
from stitch_tui.tools.profiling.metrics import Question, metrics
from stitch_tui.tools.profiling.ncu_csv import Unreadable, launches, profiles
from stitch_tui.tools.profiling.profile import KernelProfile, function_name
from stitch_tui.tools.solo import UNSUPPORTED_EXIT, Solo

SECONDS = 90.0
"""For collecting; reading the report takes a second or two."""
MOST_LAUNCHES = 24
"""Launches that are looked at."""
_UNKNOWN = re.compile(r"[Ff]ailed to find metric (?:regex:)?\^?\(?([\w.]+)")
_NOTHING = "No kernels were profiled"
_FAULTS = (
    (
        "ERR_NVGPUCTRPERM",
        "the driver lets only administrators read performance counters: run as root, or load the nvidia "
        "module with NVreg_RestrictProfilingToAdminUsers=0",
    ),
    ("LibraryNotLoaded", "ncu cannot load the driver's profiling library here, as in some containers"),
    (
        "driver resource unavailable",
        "another profiler holds the device's counters: end it, or DCGM's profiling",
    ),
    ("not supported on this device", "this ncu does not know the device: install a newer Nsight Compute"),
    ("Cuda driver is not compatible", "this ncu does not fit the driver: install a newer Nsight Compute"),
    ("InterprocessLockFailed", "another user's ncu left a lock file in the temporary folder: remove it"),
    (_NOTHING, "the candidate launched no kernel"),
)
"""What ncu prints, and what it means for the user."""


@dataclass(frozen=True)
class NcuAnswer:
    """What ncu said; without kernels `why` says why not."""

    kernels: tuple[KernelProfile, ...] = ()
    why: str = ""
    tool: str = ""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


async def measure(
    ncu: Path,
    alone: Solo,
    asked: Sequence[Question],
    report: Path,
    *,
    kernels: Sequence[str] = (),
    timeout: float = SECONDS,
) -> NcuAnswer:
    """One warmed-up run of a candidate under ncu; never raises for what ncu or the candidate do.

    Args:
        report: where the ``.ncu-rep`` is kept.
        kernels: the kernels to look at, as traces name them; empty, or none of them found: all.
    """
    wanted = list(metrics(asked))
    notes: tuple[str, ...] = ()
    try:
        done = await _collect(ncu, alone, wanted, report, kernels, timeout)
        unknown = set(_UNKNOWN.findall(done.stdout + done.stderr)) & set(wanted)
        if unknown:
            wanted = [metric for metric in wanted if metric not in unknown]
            notes = tuple(f"this ncu does not know {metric}" for metric in sorted(unknown))
            done = await _collect(ncu, alone, wanted, report, kernels, timeout)
        if kernels and _NOTHING in done.stdout + done.stderr:
            done = await _collect(ncu, alone, wanted, report, (), timeout)
        if why := _fault(done, report, timeout):
            return NcuAnswer(why=why, notes=notes, seconds=done.seconds)
        page = await _read(ncu, report, alone)
        found, doubts = profiles(launches(page.stdout))
        seconds = done.seconds + page.seconds
        return NcuAnswer(found, "", await _version(ncu), (*notes, *doubts), seconds)
    except Unreadable as reason:
        return NcuAnswer(why=str(reason), notes=notes)
    except OSError as error:
        return NcuAnswer(why=f"ncu cannot be started: {error.strerror or error}")


async def _collect(
    ncu: Path, alone: Solo, wanted: Sequence[str], report: Path, kernels: Sequence[str], timeout: float
) -> process.Finished:
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    named = "|".join(re.escape(name) for name in dict.fromkeys(map(function_name, kernels)))
    argv = [  # --kernel-name compares function names
        *(str(ncu), "--force-overwrite", "--export", str(report.with_suffix(""))),
        *("--clock-control", "none", "--profile-from-start", "off"),
        *("--launch-count", str(MOST_LAUNCHES), "--metrics", ",".join(wanted)),
        *(("--kernel-name", f"regex:^({named})$") if named else ()),
        *alone.command(1),
    ]
    with scratch.folder("stitch-ncu-") as folder:
        return await process.run(argv, timeout=timeout, env=_plain(alone), cwd=folder)


async def _read(ncu: Path, report: Path, alone: Solo) -> process.Finished:
    """The report as a table in base units."""
    argv = [str(ncu), "--import", str(report), "--csv", "--page", "raw", "--print-units", "base"]
    return await process.run(argv, timeout=SECONDS, env=_plain(alone))


def _plain(alone: Solo) -> dict[str, str]:
    """The candidate's environment, with numbers written as C writes them."""
    return alone.environment | {"LC_ALL": "C"}


def _fault(done: process.Finished, report: Path, timeout: float) -> str:
    """Why there is nothing to read, in a sentence; empty when there is."""
    text = done.stdout + done.stderr
    for words, meaning in _FAULTS:
        if words.lower() in text.lower():
            return meaning
    if done.timed_out:
        return f"ncu took longer than {timeout:g} s"
    if done.returncode == UNSUPPORTED_EXIT:
        return "the candidate does not support the full size"
    if not report.exists():
        lines = [line for line in text.splitlines() if line.strip()]
        errors = [line for line in lines if "ERROR" in line]
        last = "".join((errors or lines or ["it printed nothing"])[-1:]).removeprefix("==ERROR==").strip()
        return f"ncu ended with status {done.returncode} and no report: {last[:200]}"
    return ""


async def _version(ncu: Path) -> str:
    """``ncu 2025.3.1``, as it says itself."""
    done = await process.run([str(ncu), "--version"], timeout=30)
    found = re.search(r"Version (\d+(?:\.\d+){1,2})", done.stdout)
    return f"ncu {found[1]}" if found else "ncu"
