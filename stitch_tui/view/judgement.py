"""What ``stitch verify`` answers, in words: what limits a candidate, why it is judged so; as Markdown."""

from collections.abc import Iterator
from typing import Any

from stitch_tui.agents.criteria import CRITERIA
from stitch_tui.agents.diagnosis import Work, diagnose
from stitch_tui.tools.errors import ExitCode
from stitch_tui.tools.profiling.profile import Profile
from stitch_tui.tools.profiling.summary import lines
from stitch_tui.tools.verdict import Finding, Flag, Timing, Verdict
from stitch_tui.view.markdown import bullets, escaped, table
from stitch_tui.view.verdict_line import describe
from stitch_tui.view.wording import duration_us, percent, times

EXIT = {
    ExitCode.GOAL_MET: "correct, and believed",
    ExitCode.GOAL_NOT_MET: "not correct",
    ExitCode.ENVIRONMENT: "this machine could not judge it",
    ExitCode.UNPROVEN: "neither correct nor wrong: not supported here, or faster than light",
}


def diagnoses(profile: Profile, work: Work) -> list[dict[str, Any]]:
    """What the rules make of a profile, the primary one first, for ``--json``."""
    return [
        {
            "disease": found.disease,
            "bottleneck": found.bottleneck,
            "evidence": found.evidence,
            "change": found.change,
            "criterion": CRITERIA[found.disease],
        }
        for found in diagnose(profile, work)
    ]


def reasons(verdict: Verdict, work: Work, code: ExitCode) -> list[str]:
    """What ``--why`` adds: the grounds of the exit code, of the error's limit, of the profile."""
    return [
        f"exit code {int(code)}: {EXIT.get(code, code.name.lower())}",
        *_compared(verdict),
        *(f"not checked: {reason}" for reason in verdict.unchecked),
        *(_profiled(verdict.profile, work) if verdict.profile else ["not profiled: nobody asked, or no GPU"]),
    ]


def _compared(verdict: Verdict) -> Iterator[str]:
    if verdict.error is not None and verdict.error_limit:
        passed = sum(trial.passed for trial in verdict.trials)
        share = percent(verdict.error / verdict.error_limit)
        yield (
            f"error {verdict.error:.2e} is {share} of its limit {verdict.error_limit:.2e}, which follows "
            f"from the reference's own rounding; {passed} of {len(verdict.trials)} trials passed"
        )
    if Flag.QUARANTINED in verdict.flags:
        yield "quarantined: it is faster than the device can move and multiply"


def _profiled(profile: Profile, work: Work) -> Iterator[str]:
    yield f"profile by {profile.tool or profile.evidence}: {profile.why or 'as asked'}"
    yield from profile.notes
    found = diagnose(profile, work)
    for one in found:
        yield f"{one.disease}, since {one.evidence}; the rule: {CRITERIA[one.disease]}"
    if not found:
        yield "no rule holds on this evidence"


def markdown(verdict: Verdict, work: Work, code: ExitCode, *, why: bool) -> str:
    """The whole answer."""
    parts = [f"# {escaped(str(verdict.category))}", "", escaped(describe(verdict))]
    parts += ["", *bullets([f"device: {verdict.device}", f"took {verdict.seconds:.1f} s"])]
    if verdict.timing:
        parts += ["", *table(_times(verdict.timing))]
    if verdict.findings:
        told = map(_found, verdict.findings)
        parts += ["", "## Findings", "", *table([("where", "category", "what"), *told])]
    if verdict.profile:
        parts += ["", "## Profile", "", *bullets([*lines(verdict.profile), *verdict.profile.notes])]
        if found := diagnose(verdict.profile, work):
            rows = [(str(d.disease), d.evidence, d.change) for d in found]
            parts += ["", "## Diagnosis", "", *table([("what", "evidence", "one change"), *rows])]
    if why:
        parts += ["", "## Why", "", *bullets(reasons(verdict, work, code))]
    return "\n".join(parts)


def _found(finding: Finding) -> tuple[str, str, str]:
    where = f"{finding.file}:{finding.line}" if finding.line else finding.where
    return where, str(finding.category), finding.message


def _times(timing: Timing) -> list[tuple[str, str, str]]:
    rows = [("program", "time", "speedup"), ("candidate", duration_us(timing.candidate.median_us), "")]
    for name, samples in timing.baselines.items():
        ratio = timing.speedups.get(name)
        told = f"{times(ratio.value)} [{ratio.low:.2f}, {ratio.high:.2f}], {ratio.verdict}" if ratio else ""
        rows.append((name, duration_us(samples.median_us), told))
    return rows
