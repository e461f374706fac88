"""The profile of one correct candidate: its trace, then Nsight Compute on the kernels that take the time."""

import time
from collections.abc import Sequence
from pathlib import Path

from stitch_tui.tools.bench import Bench, Json, OnEvent
from stitch_tui.tools.profiling.choice import choose
from stitch_tui.tools.profiling.metrics import questions
from stitch_tui.tools.profiling.ncu import NcuAnswer, measure
from stitch_tui.tools.profiling.profile import Evidence, Profile
from stitch_tui.tools.profiling.system import of_candidate
from stitch_tui.tools.solo import solo
from stitch_tui.tools.verdict import Build

REPORTS = 100
"""``.ncu-rep`` files that are kept, a megabyte or so each; the oldest go first."""


async def profiled(
    bench: Bench, target: Json, source: Path, build: Build, on_event: OnEvent | None = None
) -> Profile | None:
    """Where a candidate's time goes and what limits its kernels, on the task's own inputs at full size.

    None where nothing is profiled: without a GPU, or by the user's wish.  What a profiler cannot do is said
    in the profile and is no error.

    Args:
        target: what it computes, as the judge's methods take it.
        build: its library, from nvcc.
        on_event: ``profiling`` with the ``tool`` and the ``reason`` why it is asked, or not.

    Raises:
        StitchError: the judge could not draw the inputs.
    """
    started = time.monotonic()
    say = on_event or (lambda event, data: None)
    cuda = bench.cuda
    if cuda is None or cuda.profiles is None:
        return None
    async with solo(bench, target, Path(build.artifact), full=True) as alone:
        traced = await of_candidate(bench, alone)
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
            return known.model_copy(update={"seconds": round(time.monotonic() - started, 1)})
        if cuda.toolkit.ncu is None:
            return known.model_copy(update={"why": f"ncu is not installed; {traced.why}".rstrip("; ")})
        asked = questions(source.read_text(errors="replace"), build.kernels)
        report = _reports(cuda.profiles) / f"{build.artifact_sha256[:32]}.ncu-rep"
        answer = await measure(cuda.toolkit.ncu, alone, asked, report, kernels=choice.kernels)
    return _with(known, answer, report, time.monotonic() - started)


def _with(known: Profile, answer: NcuAnswer, report: Path, seconds: float) -> Profile:
    """What the trace told, and what ncu did or why it did not."""
    known, notes = known.model_copy(update={"seconds": round(seconds, 1)}), answer.notes
    if not answer.kernels:
        return known.model_copy(update={"why": answer.why, "notes": notes})
    return known.model_copy(
        update={
            "evidence": Evidence.NCU,
            "tool": answer.tool,
            "kernels": answer.kernels,
            "report": str(report),
            "notes": notes,
        }
    )


def _reports(folder: Path) -> Path:
    """The folder of reports, with room for one more."""
    folder.mkdir(parents=True, exist_ok=True)
    kept: Sequence[Path] = sorted(folder.glob("*.ncu-rep"), key=lambda path: path.stat().st_mtime)
    for old in kept[: max(0, len(kept) - REPORTS + 1)]:
        old.unlink(missing_ok=True)
    return folder
