"""``report.md``: what was stitched, what was proved, what was measured.  Numbers only from verdicts."""

from collections.abc import Iterator

from stitch_tui.tools.bundle.contents import Kernel, Program
from stitch_tui.tools.bundle.coverage import Basis, coverage
from stitch_tui.tools.bundle.forward import one_line
from stitch_tui.tools.profiling.summary import lines as profile_lines
from stitch_tui.tools.verdict import Flag, Verdict

FUNCTIONAL = "*functional, not timed*"
"""Said of everything that ran on the emulator."""

_BASIS = {
    Basis.MEASURED: "of the reference's measured time",
    Basis.ROOFLINE: "of the reference's roofline time on this device; its nodes were not timed",
    Basis.ESTIMATE: "by an estimate from FLOPs and bytes; the reference was not timed",
}


def report_text(program: Program) -> str:
    """The report as Markdown."""
    lines = [f"# {program.reference.class_name}, stitched", "", *_summary(program)]
    if program.kernels:
        lines += ["", *_table(program)]
    if left := [kernel for kernel in program.kernels if not kernel.source]:
        lines += ["", "Left to PyTorch: " + ", ".join(_title(kernel) for kernel in left) + "."]
    if profiled := list(_profiles(program)):
        lines += ["", "## Where the time goes", "", *profiled]
    lines += ["", *_use(program)]
    return "\n".join(lines) + "\n"


def _summary(program: Program) -> Iterator[str]:
    covered = coverage(program.graph, [kernel.region for kernel in program.stitched])
    owned = sum(len(kernel.region.nodes) for kernel in program.stitched)
    verdict = program.verdict
    if verdict is None:
        yield "The program as a whole was not verified."
    else:
        yield f"**{_judged(verdict)}**: {one_line(verdict.summary)}"
        yield ""
        yield f"* device: {verdict.device}"
        yield f"* error / limit: {_error(verdict)}"
        yield from (f"* {line}" for line in _times(verdict))
        yield from (f"* not checked: {one_line(line)}" for line in verdict.unchecked)
    yield ""
    yield (
        f"CUDA kernels ({len(program.stitched)}) compute {owned} of {len(program.graph.nodes)} operators, "
        f"{covered.share:.0%} {_BASIS[covered.basis]}. PyTorch runs the rest."
    )


def _table(program: Program) -> Iterator[str]:
    yield "| subtask | operators | verdict | error / limit | time | speedup | device |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for kernel in program.kernels:
        verdict = kernel.verdict
        cells = [_title(kernel), str(len(kernel.region.nodes))]
        if verdict is None:
            cells += ["not verified" if kernel.source else "PyTorch", "", "", "", ""]
        else:
            cells += [_judged(verdict), _error(verdict), *_time(verdict), verdict.device]
        yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _profiles(program: Program) -> Iterator[str]:
    for kernel in program.kernels:
        if kernel.verdict is not None and kernel.verdict.profile is not None:
            yield f"* {_title(kernel)}"
            yield from (f"  * {one_line(line)}" for line in profile_lines(kernel.verdict.profile))


def _title(kernel: Kernel) -> str:
    return f"{kernel.id} {one_line(kernel.title)}"


def _judged(verdict: Verdict) -> str:
    flags = [flag.value for flag in verdict.flags if flag is not Flag.FUNCTIONAL]
    return ", ".join([verdict.category.value, *flags])


def _error(verdict: Verdict) -> str:
    if verdict.error is None or verdict.error_limit is None:
        return ""
    return f"{verdict.error:.2g} / {verdict.error_limit:.2g}"


def _time(verdict: Verdict) -> tuple[str, str]:
    """Time and speedup of a table row; on the emulator neither is a claim."""
    if verdict.device == "emulator" or Flag.FUNCTIONAL in verdict.flags:
        return FUNCTIONAL, ""
    if verdict.timing is None:
        return "not timed", ""
    timing = verdict.timing
    best = timing.speedups.get(timing.best_baseline) if timing.baselines else None
    return f"{timing.candidate.median_us:.1f} µs", "" if best is None else f"{best.value:.2f}x"


def _times(verdict: Verdict) -> Iterator[str]:
    timing = verdict.timing
    if verdict.device == "emulator" or Flag.FUNCTIONAL in verdict.flags:
        yield FUNCTIONAL
    elif timing is None:
        yield "not timed"
    else:
        sample = timing.candidate
        interval = f"{sample.low_us:.1f} to {sample.high_us:.1f}, {sample.count} runs"
        yield f"time: {sample.median_us:.1f} µs ({interval})"
        if timing.bind_us is not None:
            yield f"weight-only work, once per change of weights: {timing.bind_us:.1f} µs"
        for name, ratio in timing.speedups.items():
            interval = f"{ratio.low:.2f} to {ratio.high:.2f}"
            yield f"against {name}: {ratio.value:.2f}x ({interval}, {ratio.verdict})"
        for name, beside in timing.lower_precision.items():
            ratio = beside.speedup
            interval = f"{ratio.low:.2f} to {ratio.high:.2f}"
            yield f"beside {name}, which multiplies in TF32: {ratio.value:.2f}x ({interval})"
        if timing.replaced is not None:
            ratio = timing.replaced.speedup
            interval = f"{ratio.low:.2f} to {ratio.high:.2f}"
            yield f"against the program before it: {ratio.value:.2f}x ({interval}, {ratio.verdict})"


def _use(program: Program) -> Iterator[str]:
    yield "## Use"
    yield ""
    yield (
        f"`model_new.py` holds `ModelNew`, which takes the constructor arguments, inputs and `state_dict` of "
        f"`{program.reference.class_name}` in {program.reference.mode} mode. It needs torch, an NVIDIA GPU "
        "and nvcc, not stitch. Without a GPU the emulator runs it: "
        "`stitch verify stitched/model_new.py --reference REF`."
    )
    yield ""
    yield f"Reference: `reference.py`, sha256 `{program.reference.sha256}`."
