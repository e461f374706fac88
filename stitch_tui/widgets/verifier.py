"""The Verifier pane: what was judged, on what evidence; error and speed with their spread."""

from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import Click
from textual.widgets import Static

from stitch_tui.agents.events import Citation
from stitch_tui.agents.state import Iteration, Subtask
from stitch_tui.plain_text import count, one_line, printable
from stitch_tui.tools.profiling.summary import lines
from stitch_tui.tools.verdict import Build, Flag, Ratio, Samples, Verdict
from stitch_tui.view.listing import plain_name
from stitch_tui.view.profile_text import level
from stitch_tui.view.wording import (
    BASELINE,
    FUNCTIONAL,
    OUTCOME,
    bar,
    bytes_text,
    duration_us,
    interval_us,
    iteration_title,
    percent,
    times,
)
from stitch_tui.widgets import roofline
from stitch_tui.widgets.cited import clicked, linked

FINDINGS = 12
KERNELS = 8
CITATIONS = 6
LABEL = 10


class VerifierPane(VerticalScroll, can_focus=True):
    """Shows one iteration's verdict."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Down", show=False),
        Binding("k", "scroll_up", "Up", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._about: tuple[Iteration | None, Build | None, Subtask | None] = (None, None, None)
        self._cited: tuple[Citation, ...] = ()

    def compose(self) -> ComposeResult:
        yield Static(id="verdict-text", markup=False)

    def show(
        self,
        iteration: Iteration | None,
        build: Build | None,
        subtask: Subtask | None,
        cited: tuple[Citation, ...] = (),
    ) -> None:
        """Show an iteration of `subtask`, or of the program where that is None.

        Args:
            cited: what roles were shown of the documentation.
        """
        self._about, self._cited = (iteration, build, subtask), cited
        self._draw()

    def on_click(self, event: Click) -> None:
        if (chosen := clicked(event, self._cited)) is not None:
            self.post_message(chosen)

    def on_resize(self) -> None:
        """Lines depend on the width, which a pane that is not shown does not have."""
        self._draw()

    def _draw(self) -> None:
        width = max(self.scrollable_content_region.width, 20)
        lines = [*_lines(*self._about, width), *_citations(self._cited)]
        self.query_one("#verdict-text", Static).update(Content("\n").join(lines))


def _lines(
    iteration: Iteration | None, build: Build | None, subtask: Subtask | None, width: int
) -> Iterator[Content]:
    if iteration is None:
        yield Content.styled("nothing judged yet", "$muted")
        yield from _expected(subtask)
        return
    verdict = iteration.verdict
    yield Content.styled(iteration_title(iteration), "$muted")
    if verdict is None:
        yield Content.styled("in the works" if not iteration.outcome else str(iteration.outcome), "bold")
        yield from _build(build)
        yield from _expected(subtask)
        return
    yield from _decision(iteration, verdict)
    yield from _error(verdict, width)
    yield from _timing(verdict, width)
    yield from _advice(iteration)
    yield from _profile(verdict)
    yield from _roofline(verdict, subtask, width)
    yield from _findings(verdict)
    yield from _build(build)
    yield from _evidence(verdict)


def _citations(cited: tuple[Citation, ...]) -> Iterator[Content]:
    """The latest, each a line that leads to its text."""
    if not cited:
        return
    yield _section("documentation")
    for number in range(max(len(cited) - CITATIONS, 0), len(cited)):
        yield linked(cited[number], number, LABEL)


def _decision(iteration: Iteration, verdict: Verdict) -> Iterator[Content]:
    style = "$gate-pass bold" if verdict.correct else "$gate-fail bold"
    mark = "✓" if verdict.correct else "✗"
    word = str(verdict.category).replace("_", " ")
    outcome = f"  {OUTCOME[iteration.outcome]} {iteration.outcome}" if iteration.outcome else ""
    yield Content.assemble((f"{mark} {word}", style), (outcome, "$muted"))
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
        yield _section("error against limit")
        room = max(min(width - 26, 24), 6)
        yield Content.assemble(_label("error"), (f"{verdict.error:.1e} of {verdict.error_limit:.1e}", style))
        yield Content.assemble(
            _label(""), ("▕", "$muted"), (bar(share, room), style), ("▏", "$muted"),
            (f" {percent(share) if share < 10 else times(share)}", style),
        )  # fmt: skip
    if verdict.trials:
        style = "$gate-pass" if passed == len(verdict.trials) else "$gate-fail"
        yield Content.assemble(_label("trials"), (f"{passed} of {len(verdict.trials)} passed", style))
        for trial in [t for t in verdict.trials if not t.passed][:3]:
            text = f"✗ {trial.name}: {trial.error:.1e} of {trial.limit:.1e} {trial.note}"
            yield Content.styled(_indent(one_line(text)), "$gate-fail")


def _timing(verdict: Verdict, width: int) -> Iterator[Content]:
    timing = verdict.timing
    if timing is None:
        return
    yield _section("time, 95 % intervals")
    yield Content.assemble(_label("candidate"), (interval_us(timing.candidate), "bold"))
    for name, samples in timing.baselines.items():
        mark = "•" if name == timing.best_baseline else " "
        yield from _baseline(name, mark, samples, timing.speedups.get(name), width)
    for name, beside in timing.lower_precision.items():
        yield from _baseline(name, " ", beside.samples, beside.speedup, width)
    if replaced := timing.replaced:
        yield from _baseline("program before", " ", replaced.samples, replaced.speedup, width)
    if timing.bind_us:
        yield Content.assemble(_label("bind"), (f"{duration_us(timing.bind_us)}, amortised", "$muted"))
    for note in timing.notes:
        yield Content.styled(_indent(one_line(note)), "$muted")


def _baseline(name: str, mark: str, samples: Samples, ratio: Ratio | None, width: int) -> Iterator[Content]:
    label = f"{BASELINE.get(name, name):<15}{mark} "
    if ratio is None:
        yield Content.assemble((label, ""), (duration_us(samples.median_us), "$muted"))
        return
    style = _ratio_style(ratio)
    spread = f" [{ratio.low:.2f}, {ratio.high:.2f}]"
    verdict = f" {ratio.verdict}" if width >= 44 else ""
    yield Content.assemble((label, ""), (times(ratio.value), f"{style} bold"), (spread + verdict, style))
    if width >= 34:
        yield Content.assemble((f"{'':4}", ""), (interval_us(samples), "$muted"))


def _ratio_style(ratio: Ratio) -> str:
    return {"faster": "$gain", "slower": "$regression"}.get(ratio.verdict, "$muted")


def _advice(iteration: Iteration) -> Iterator[Content]:
    if (advice := iteration.advice) is None:
        return
    yield _section("advice")
    yield Content.assemble(_label("limit"), (str(advice.bottleneck), "$hot bold"))
    yield Content.styled(printable(advice.evidence), "$muted")
    yield Content(printable(f"→ {advice.change}"))


def _profile(verdict: Verdict) -> Iterator[Content]:
    if verdict.profile is None:
        return
    yield _section("profile")
    for line in lines(verdict.profile):
        yield Content.styled(printable(line), "$muted" if line.startswith(" ") else "")
    for note in verdict.profile.notes:
        yield Content.styled(printable(f"note: {note}"), "$waiting")


def _roofline(verdict: Verdict, subtask: Subtask | None, width: int) -> Iterator[Content]:
    if subtask is None or not verdict.correct:
        return
    yield _section("roofline")
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
    yield Content.assemble(_label("bound"), (duration_us(bound), ""))
    room = max(min(width - 26, 24), 6)
    style = "$hot" if share >= 0.6 else "$cold"
    yield Content.assemble(
        _label("reached"), ("▕", "$muted"), (bar(share, room), style), ("▏", "$muted"),
        (f" {percent(share)}", f"{style} bold"),
    )  # fmt: skip


def _findings(verdict: Verdict) -> Iterator[Content]:
    if not verdict.findings:
        return
    yield _section(count(len(verdict.findings), "finding"))
    for finding in verdict.findings[:FINDINGS]:
        where = f"{one_line(finding.file)}:{finding.line} " if finding.line else ""
        style = "$waiting" if finding.detail.get("severity") == "warning" else "$gate-fail"
        yield Content.assemble((where, "bold"), (printable(finding.message), style))
        if finding.where:
            yield Content.styled(_indent(one_line(finding.where), 2), "$muted")
    if len(verdict.findings) > FINDINGS:
        yield Content.styled(f"and {len(verdict.findings) - FINDINGS} more", "$muted")


def _build(build: Build | None) -> Iterator[Content]:
    if build is None:
        return
    yield _section("build")
    how = "cached" if build.cached else f"{build.seconds:.1f} s"
    style = "$gate-pass" if build.ok else "$gate-fail"
    arch = f", {build.arch}" if build.arch else ""
    yield Content.assemble(
        _label(build.device), ("ok" if build.ok else "failed", style), (f", {how}{arch}", "$muted")
    )
    for kernel in build.kernels[:KERNELS]:
        spill = f", {bytes_text(kernel.spill_bytes)} spilled" if kernel.spill_bytes else ""
        shared = f", {bytes_text(kernel.shared_bytes)} shared" if kernel.shared_bytes else ""
        yield Content.assemble(
            (_indent(one_line(plain_name(kernel.kernel)), 2), ""),
            (f" {kernel.registers} registers{shared}", "$muted"),
            (spill, "$hot"),
        )
    if len(build.kernels) > KERNELS:
        yield Content.styled(f"  and {len(build.kernels) - KERNELS} more kernels", "$muted")


def _evidence(verdict: Verdict) -> Iterator[Content]:
    yield _section("evidence")
    timed = "measured with event and handshake times" if verdict.timing else "not timed"
    yield Content.assemble(_label("level"), (f"{timed}; {level(verdict.profile)}", ""))
    yield Content.assemble(_label("device"), (one_line(verdict.device), "$muted"))
    for text in verdict.unchecked:
        yield Content.styled(f"unchecked: {one_line(text)}", "$waiting")
    if verdict.protections:
        yield Content.styled(f"{count(len(verdict.protections), 'protection')} active", "$muted")
    yield Content.assemble(_label("took"), (f"{verdict.seconds:.1f} s", "$muted"))


def _expected(subtask: Subtask | None) -> Iterator[Content]:
    """What is known before anything was written."""
    if subtask is None:
        return
    if subtask.share is not None:
        yield Content.assemble(_label("share"), (f"{percent(subtask.share)} of the reference's time", ""))
    if subtask.amdahl is not None:
        yield Content.assemble(_label("at most"), (f"{times(subtask.amdahl)} for the whole program", ""))
    if subtask.bound_us is not None:
        yield Content.assemble(_label("bound"), (f"{duration_us(subtask.bound_us)} (roofline)", ""))


def _section(title: str) -> Content:
    return Content.assemble(("\n", ""), (title.upper(), "$muted bold"))


def _label(text: str) -> tuple[str, str]:
    return f"{text:<{LABEL}}", "$muted"


def _indent(text: str, by: int = LABEL) -> str:
    return f"{'':{by}}{text}"
