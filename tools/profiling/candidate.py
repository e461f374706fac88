"""The profile of one correct candidate: its trace, then Nsight Compute on the kernels that take the time."""

import time
from collections.abc import Sequence
from pathlib import Path

from stitch_tui.tools.bench import Bench, Cuda, Json, OnEvent
from stitch_tui.tools.errors import StitchError
from stitch_tui.tools.profiling.choice import choose
from stitch_tui.tools.profiling.metrics import Question, questions
from stitch_tui.tools.profiling.ncu import NcuAnswer, measure
from stitch_tui.tools.profiling.profile import Evidence, Profile
from stitch_tui.tools.profiling.sass import code_of
from stitch_tui.tools.profiling.system import of_candidate, of_program
from stitch_tui.tools.solo import Solo, solo
from stitch_tui.tools.verdict import Build

REPORTS = 100
"""``.ncu-rep`` files that are kept, a megabyte or so each; the oldest go first."""


async def profiled(
    bench: Bench,
    target: Json,
    source: Path,
    build: Build,
    *,
    seconds: float = 0.0,
    on_event: OnEvent | None = None,
) -> Profile | None:
    """Where a candidate's time goes and what limits its kernels, on the task's own inputs at full size.

    None where nothing is profiled: without a GPU, or by the user's wish.  What a profiler cannot do, or the
    judge, is said in the profile and is no error.

    Args:
        target: what it computes, as the judge's methods take it.
        build: its library, from nvcc.
        seconds: that one run takes, about.
        on_event: ``profiling`` with the ``tool`` and the ``reason`` why it is asked, or not.
    """
    cuda = bench.cuda
    if cuda is None or cuda.profiles is None:
        return None
    started = time.monotonic()
    code, uncounted = await code_of(build, cuda.toolkit)
    try:
        report = _reports(cuda.profiles) / f"{build.artifact_sha256[:32]}.ncu-rep"
        async with solo(bench, target, Path(build.artifact), full=True) as alone:
            asked = questions(source.read_text(errors="replace"), build.kernels)
            found = await _measured(cuda, bench, alone, asked, report, seconds, on_event or _unheard)
    except (StitchError, OSError) as error:
        found = Profile(evidence=Evidence.NONE, why=f"it could not be prepared for a profiler: {error}")
    known = found.evidence if found.evidence is not Evidence.NONE or not code else Evidence.CODE
    notes = (*found.notes, *((uncounted,) if uncounted else ()))
    seconds = round(time.monotonic() - started, 1)
    return found.model_copy(update={"evidence": known, "code": code, "notes": notes, "seconds": seconds})


async def _measured(
    cuda: Cuda,
    bench: Bench,
    alone: Solo,
    asked: Sequence[Question],
    report: Path,
    seconds: float,
    say: OnEvent,
) -> Profile:
    """The trace, then the counters of the kernels that it shows."""
    traced = await of_candidate(bench, alone, seconds)
    say("profiling", {"tool": traced.evidence, "reason": traced.why or "the system first"})
    choice = choose(traced.system)
    say("profiling", {"tool": Evidence.NCU if choice.ask else Evidence.NONE, "reason": choice.reason})
    known = Profile(
        evidence=traced.evidence,
        why="; ".join(filter(None, (choice.reason, traced.why))),
        system=traced.system,
        system_evidence=traced.evidence,
    )
    if not choice.ask:
        return known
    if cuda.toolkit.ncu is None:
        return known.model_copy(update={"why": "; ".join(filter(None, ("ncu is not installed", traced.why)))})
    answer = await measure(cuda.toolkit.ncu, alone, asked, report, kernels=choice.kernels)
    return _with(known, answer, report)


async def profiled_program(bench: Bench, options: Json, module: Path, seconds: float) -> Profile | None:
    """Where a stitched program's time goes; None where nothing is profiled.

    Args:
        options: of its reference, as the judge's method ``open`` takes them.
        module: ``model_new.py`` in its bundle.
        seconds: that one pass takes, about.
    """
    if bench.cuda is None or bench.cuda.profiles is None:
        return None
    started = time.monotonic()
    traced = await of_program(bench, options, module, seconds)
    return Profile(
        evidence=traced.evidence,
        why=traced.why or "the whole program",
        system=traced.system,
        system_evidence=traced.evidence,
        seconds=round(time.monotonic() - started, 1),
    )


def _unheard(event: str, data: Json) -> None:
    """Nobody listens."""


def _with(known: Profile, answer: NcuAnswer, report: Path) -> Profile:
    """What the trace told, and what ncu did or why it did not."""
    if not answer.kernels:
        return known.model_copy(update={"why": answer.why, "notes": answer.notes})
    return known.model_copy(
        update={
            "evidence": Evidence.NCU,
            "tool": answer.tool,
            "kernels": answer.kernels,
            "report": str(report),
            "notes": answer.notes,
        }
    )


def _reports(folder: Path) -> Path:
    """The folder of reports, with room for one more."""
    folder.mkdir(parents=True, exist_ok=True)
    kept: Sequence[Path] = sorted(folder.glob("*.ncu-rep"), key=lambda path: path.stat().st_mtime)
    for old in kept[: max(0, len(kept) - REPORTS + 1)]:
        old.unlink(missing_ok=True)
    return folder
