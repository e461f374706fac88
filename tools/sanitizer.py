"""compute-sanitizer over one candidate: memcheck, racecheck, initcheck and synccheck on a small shape.

Seconds a tool, so only for a version that is about to become *best*.  The candidate runs in a process of its
own (``worker/solo.py``) on inputs that the judge drew, each tensor an allocation of its own, so that
an access past its end leaves it.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools import process, scratch
from stitch_tui.tools.bench import Bench, Json
from stitch_tui.tools.sanitizer_report import errors_of, finished
from stitch_tui.tools.snapshot import STAGED
from stitch_tui.tools.solo import UNSUPPORTED_EXIT, Solo, solo
from stitch_tui.tools.summary import distinct
from stitch_tui.tools.verdict import Build, Finding

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
SECONDS = 90.0
"""For one tool."""
MOST_REPORTS = 50
OPTIONS: Mapping[str, Sequence[str]] = {
    "memcheck": ("--report-api-errors", "no", "--padding", "256"),
    "racecheck": ("--racecheck-report", "analysis"),
    "initcheck": (),
    "synccheck": (),
}
_ASYNCHRONOUS = re.compile(
    r"\bcp\.async\.bulk\b|\bcp_async_bulk|\bwgmma\b|\bCUtensorMap\b|[<\"](?:cutlass|cute)/"
)
_NAMED_BARRIER = re.compile(r"\bbar(?:rier)?\.(?:cta\.)?(?:sync|arrive)\b|NamedBarrier|\bmbarrier\b")
_LIBRARY = re.compile(r"\bcublasLt\w+\s*\(")
UNFIT = {
    "initcheck": (_LIBRARY, "it does not see what a library's kernels write by bulk copies"),
    "racecheck": (
        _ASYNCHRONOUS,
        "it does not follow bulk copies and wgmma, and sees races in correct kernels",
    ),
    "synccheck": (_NAMED_BARRIER, "it takes barriers that only some warps join for faults"),
}
"""Tools that accuse correct kernels of a kind: the kind, and why."""


@dataclass(frozen=True)
class Sanitized:
    """What the tools said together."""

    findings: tuple[Finding, ...] = ()
    unchecked: tuple[str, ...] = ()
    """Tools that did not come to an answer, each with the reason."""
    seconds: float = 0.0
    logs: Mapping[str, str] | None = None
    """The whole text of each tool that ran."""


async def sanitized(bench: Bench, target: Json, source: Path, build: Build) -> Sanitized:
    """All tools over a candidate of `bench`'s GPU, on inputs of the judge's smallest shape.

    Args:
        target: what it computes, as the judge's methods take it.

    Raises:
        StitchError: the judge could not draw the inputs.
    """
    cuda = bench.cuda
    if cuda is None or cuda.toolkit.compute_sanitizer is None:
        return Sanitized(unchecked=("compute-sanitizer: it is not installed",))
    async with solo(bench, target, Path(build.artifact), full=False) as alone:
        return await sanitize(cuda.toolkit.compute_sanitizer, alone, source=source)


async def sanitize(
    executable: Path,
    alone: Solo,
    *,
    source: Path,
    tools: Sequence[str] = TOOLS,
    timeout: float = SECONDS,
) -> Sanitized:
    """Run a candidate once under each tool, all at the same time.

    Args:
        executable: compute-sanitizer.
        alone: the candidate as nvcc built it, with ``-lineinfo``.
        source: the ``.cu``; decides which tools fit it, and names the findings' file.
        timeout: seconds for a tool.
    """
    text = source.read_text(encoding="utf-8", errors="replace")
    unfit = {tool: why for tool, (kind, why) in UNFIT.items() if tool in tools and kind.search(text)}
    fit = [tool for tool in tools if tool not in unfit]
    with scratch.folder("stitch-sanitizer-") as folder:
        runs = [_run(tool, executable, alone, folder / f"{tool}.log", timeout) for tool in fit]
        answers = await asyncio.gather(*runs)
    unchecked = [f"compute-sanitizer {tool}: {why}" for tool, why in unfit.items()]
    findings: list[Finding] = []
    for tool, answer in zip(fit, answers, strict=True):
        found = errors_of(answer.text, STAGED, source.name)
        findings += found
        if answer.why and not found:
            unchecked.append(f"compute-sanitizer {tool}: {answer.why}")
    return Sanitized(
        findings=tuple(distinct(findings)),
        unchecked=tuple(unchecked),
        seconds=max((answer.seconds for answer in answers), default=0.0),
        logs={tool: answer.text for tool, answer in zip(fit, answers, strict=True)},
    )


@dataclass(frozen=True)
class _Answer:
    text: str
    why: str
    """Why silence says nothing; empty when it does."""
    seconds: float


async def _run(tool: str, executable: Path, alone: Solo, log: Path, timeout: float) -> _Answer:
    argv = [
        str(executable),
        *("--tool", tool, "--print-limit", str(MOST_REPORTS), "--log-file", str(log)),
        *OPTIONS[tool],
        *alone.command(),
    ]
    try:
        done = await process.run(argv, timeout=timeout, env=alone.environment, cwd=log.parent)
    except OSError as error:
        return _Answer("", f"it cannot be started: {error.strerror}", 0.0)
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else done.stdout
    return _Answer(text, _silence(done, text, timeout), done.seconds)


def _silence(done: process.Finished, text: str, timeout: float) -> str:
    """Why a log without faults would not mean that there are none."""
    if done.timed_out:
        return f"it took longer than {timeout:g} s"
    if done.returncode == UNSUPPORTED_EXIT:
        return "the candidate does not support the small shape"
    if not finished(text) or done.returncode != 0:
        last = (done.stderr or done.stdout or text).strip().splitlines()[-1:]
        return f"it ended with status {done.returncode}: {''.join(last)[:200]}"
    return ""
