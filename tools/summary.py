"""A verdict in one sentence, and what is said once of what was found many times."""

from collections.abc import Iterable

from stitch_tui.tools.verdict import Finding, Flag, Trial, Verdict


def nearness(trial: Trial) -> tuple[bool, float]:
    """How near a trial came to its limit, failed ones first: a sort key."""
    return (not trial.passed, trial.error / trial.limit if trial.limit else trial.error)


def summary(verdict: Verdict) -> str:
    """One sentence for a person."""
    if not verdict.correct:
        first = verdict.findings[0] if verdict.findings else None
        place = f" ({first.where})" if first and first.where else ""
        return f"{verdict.category.replace('_', ' ')}: {first.message if first else 'no detail'}{place}"
    passed = f"correct in {len(verdict.trials)} trials"
    if verdict.timing is None:
        return f"{passed}, not timed" + (" (emulator)" if Flag.FUNCTIONAL in verdict.flags else "")
    if Flag.QUARANTINED in verdict.flags:
        time_us, bound_us = verdict.timing.candidate.median_us, verdict.numbers.get("bound_us", 0.0)
        return f"{passed}, quarantined: {time_us:.2f} us, and no program can need less than {bound_us:.2f} us"
    if not verdict.timing.speedups:
        return f"{passed}, {verdict.timing.candidate.median_us:.2f} us, no baseline ran"
    best = verdict.timing.best_baseline
    ratio = verdict.timing.speedups[best]
    return f"{passed}, {ratio.value:.2f}x {best}, {ratio.verdict}"


def merged(old: tuple[str, ...], new: Iterable[str]) -> tuple[str, ...]:
    """Both, in order, each once."""
    return tuple(dict.fromkeys((*old, *new)))


def distinct(findings: list[Finding]) -> list[Finding]:
    """Each fault once: threads repeat it."""
    first: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        first.setdefault((finding.category, finding.file, finding.line, finding.message), finding)
    return list(first.values())
