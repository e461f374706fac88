"""A verdict as lines: what was judged, on what evidence; the error, the time, what limits it."""

from collections.abc import Iterator

from textual.content import Content

from stitch_tui.agents.state import Iteration, Subtask
from stitch_tui.plain_text import count, one_line, printable
from stitch_tui.tools.profiling.summary import lines as profile_lines
from stitch_tui.tools.verdict import Build, Flag, Verdict
from stitch_tui.view.listing import plain_name
from stitch_tui.view.profile_text import level
from stitch_tui.view.wording import (
    FUNCTIONAL,
    OUTCOME,
    bar,
    bytes_text,
    duration_us,
    iteration_title,
    percent,
    times,
)
from stitch_tui.widgets import roofline, timing_text

FINDINGS = 12
KERNELS = 8
LABEL = 10


def lines(
    iteration: Iteration | None, build: Build | None, subtask: Subtask | None, width: int
) -> Iterator[Content]:
    if iteration is None:
        yield Content.styled("nothing judged yet", "$muted")
        yield from _expected(subtask)
        return
    verdict = iteration.verdict
    yield Content.styled(iteration_title(iteration), "$muted")
    if verdict is None:
        doing = subtask.state if subtask and subtask.state.active else "in the works"
        yield Content.styled(str(iteration.outcome or doing), "bold")
        yield from _build(build)
        yield from _expected(subtask)
        return
    yield from _decision(iteration, verdict)
    yield from _error(verdict, width)
    if verdict.timing:
        yield section("time, 95 % intervals")
        yield from timing_text.lines(verdict.timing, width)
    yield from _advice(iteration)
    yield from _profile(verdict)
    yield from _roofline(verdict, subtask, width)
    yield from _findings(verdict)
    yield from _build(build)
    yield from _evidence(verdict)


def _decision(iteration: Iteration, verdict: Verdict) -> Iterator[Content]:
    style = "$gate-pass bold" if verdict.correct else "$gate-fail bold"
    mark = "✓" if verdict.correct else "✗"
    word = str(verdict.category).replace("_", " ")
    outcome = f"  {OUTCOME[iteration.outcome]} {iteration.outcome}" if iteration.outcome else ""
    yield Content.assemble((f"{mark} {word}", style), (outcome, "$muted"))
    if verdict.timing:
        yield timing_text.headline(verdict.timing)
    if Flag.FUNCTIONAL in verdict.flags:
        yield Content.styled(FUNCTIONAL, "$waiting")
    for flag in verdict.flags:
        if flag is not Flag.FUNCTIONAL:
            yield Content.styled(_FLAGS[flag], "$waiting")
    if not verdict.correct:
        yield Content(printable(verdict.summary))


_FLAGS = {
    Flag.QUARANTINED: "quarantined: faster than light, not believed",
    Flag.UNTRUSTED: "untrusted: `stitch selftest` has not passed here",
    Flag.PARTIAL: "partial: some checks could not run",
}


def _error(verdict: Verdict, width: int) -> Iterator[Content]:
    passed = sum(trial.passed for trial in verdict.trials)
    if verdict.error is not None and verdict.error_limit:
        share = verdict.error / verdict.error_limit
        style = "$gate-pass" if share <= 1 else "$gate-fail"
        yield section("error against limit")
        said = f"{verdict.error:.1e} of {verdict.error_limit:.1e} "
        room = min(width - LABEL - len(said) - 8, 24)
        drawn = (("▕", "$muted"), (bar(share, room), style), ("▏ ", "$muted")) if room >= 4 else ()
        yield Content.assemble(
            label("error"), (said, style), *drawn, (percent(share) if share < 10 else times(share), style)
        )
    if verdict.trials:
        style = "$gate-pass" if passed == len(verdict.trials) else "$gate-fail"
        yield Content.assemble(label("trials"), (f"{passed} of {len(verdict.trials)} passed", style))
        for trial in [t for t in verdict.trials if not t.passed][:3]:
            text = f"✗ {trial.name}: {trial.error:.1e} of {trial.limit:.1e} {trial.note}"
            yield Content.styled(indent(one_line(text)), "$gate-fail")


def _advice(iteration: Iteration) -> Iterator[Content]:
    if (advice := iteration.advice) is None:
        return
    yield section("advice")
    yield Content.assemble(label("limit"), (str(advice.bottleneck), "$hot bold"))
    yield Content.styled(printable(advice.evidence), "$muted")
    yield Content(printable(f"→ {advice.change}"))


def _profile(verdict: Verdict) -> Iterator[Content]:
    if verdict.profile is None:
        return
    yield section("profile")
    for line in profile_lines(verdict.profile):
        yield Content.styled(printable(line), "$muted" if line.startswith(" ") else "")
    for note in verdict.profile.notes:
        yield Content.styled(printable(f"note: {note}"), "$waiting")


def _roofline(verdict: Verdict, subtask: Subtask | None, width: int) -> Iterator[Content]:
    if subtask is None or not verdict.correct:
        return
    yield section("roofline")
    if verdict.timing is None:
        yield Content.styled("none: it needs a time", "$muted")
        return
    time_us, bound = verdict.timing.candidate.median_us, subtask.bound_us
    if subtask.work is not None:
        yield from roofline.drawn(subtask.work, time_us, width)
        if subtask.work.source:
            yield Content.styled(f"peaks: {one_line(subtask.work.source)}", "$muted")
    if not bound:
        yield Content.styled("none: the region's work or the device's peaks are not known", "$muted")
        return
    share = bound / time_us
    yield Content.assemble(label("bound"), (duration_us(bound), ""))
    room = max(min(width - 26, 24), 6)
    style = "$hot" if share >= 0.6 else "$cold"
    yield Content.assemble(
        label("reached"), ("▕", "$muted"), (bar(share, room), style), ("▏", "$muted"),
        (f" {percent(share)}", f"{style} bold"),
    )  # fmt: skip


def _findings(verdict: Verdict) -> Iterator[Content]:
    if not verdict.findings:
        return
    yield section(count(len(verdict.findings), "finding"))
    for finding in verdict.findings[:FINDINGS]:
        where = f"{one_line(finding.file)}:{finding.line} " if finding.line else ""
        style = "$waiting" if finding.detail.get("severity") == "warning" else "$gate-fail"
        yield Content.assemble((where, "bold"), (printable(finding.message), style))
        if finding.where:
            yield Content.styled(indent(one_line(finding.where), 2), "$muted")
    if len(verdict.findings) > FINDINGS:
        yield Content.styled(f"and {len(verdict.findings) - FINDINGS} more", "$muted")


def _build(build: Build | None) -> Iterator[Content]:
    if build is None:
        return
    yield section("build")
    how = "cached" if build.cached else f"{build.seconds:.1f} s"
    style = "$gate-pass" if build.ok else "$gate-fail"
    arch = f", {build.arch}" if build.arch else ""
    yield Content.assemble(
        label(build.device), ("ok" if build.ok else "failed", style), (f", {how}{arch}", "$muted")
    )
    for kernel in build.kernels[:KERNELS]:
        spill = f", {bytes_text(kernel.spill_bytes)} spilled" if kernel.spill_bytes else ""
        shared = f", {bytes_text(kernel.shared_bytes)} shared" if kernel.shared_bytes else ""
        yield Content.assemble(
            (indent(one_line(plain_name(kernel.kernel)), 2), ""),
            (f" {kernel.registers} registers{shared}", "$muted"),
            (spill, "$hot"),
        )
    if len(build.kernels) > KERNELS:
        yield Content.styled(f"  and {len(build.kernels) - KERNELS} more kernels", "$muted")


def _evidence(verdict: Verdict) -> Iterator[Content]:
    yield section("evidence")
    timed = "measured with event and handshake times" if verdict.timing else "not timed"
    yield Content.assemble(label("level"), (f"{timed}; {level(verdict.profile)}", ""))
    yield Content.assemble(label("device"), (one_line(verdict.device), "$muted"))
    for text in verdict.unchecked:
        yield Content.styled(f"unchecked: {one_line(text)}", "$waiting")
    if verdict.protections:
        yield Content.styled(f"{count(len(verdict.protections), 'protection')} active", "$muted")
    yield Content.assemble(label("took"), (f"{verdict.seconds:.1f} s", "$muted"))


def _expected(subtask: Subtask | None) -> Iterator[Content]:
    """What is known before anything was written."""
    if subtask is None:
        return
    if subtask.share is not None:
        yield Content.assemble(label("share"), (f"{percent(subtask.share)} of the reference", ""))
    if subtask.amdahl is not None:
        yield Content.assemble(label("at most"), (f"{times(subtask.amdahl)} for the program", ""))
    if subtask.bound_us is not None:
        yield Content.assemble(label("bound"), (f"{duration_us(subtask.bound_us)} (roofline)", ""))


def section(title: str) -> Content:
    return Content.assemble(("\n", ""), (title.upper(), "$muted bold"))


def label(text: str) -> tuple[str, str]:
    return f"{text:<{LABEL}}", "$muted"


def indent(text: str, by: int = LABEL) -> str:
    return f"{'':{by}}{text}"
