"""A verdict in one line, for a terminal, a log, an answer to a script."""

from collections.abc import Iterator

from stitch_tui.tools.verdict import Flag, Verdict
from stitch_tui.view.wording import FUNCTIONAL, error_of_limit


def describe(verdict: Verdict, *, reason: bool = True) -> str:
    """A verdict in one line: category, error against limit, speedups or *functional, not timed*.

    Args:
        reason: end with what is wrong; not where the findings follow.
    """
    parts = [str(verdict.category), *_measured(verdict)]
    if Flag.FUNCTIONAL in verdict.flags:
        parts.append(FUNCTIONAL)
    if reason and not verdict.correct:
        parts.append(verdict.summary)
    return ", ".join(parts)


def _measured(verdict: Verdict) -> Iterator[str]:
    if error := error_of_limit(verdict):
        yield f"error {error} allowed"
    yield from speedups(verdict)
    for name, beside in verdict.timing.lower_precision.items() if verdict.timing else ():
        yield f"{beside.speedup.value:.2f}x over {name} (TF32)"
    if verdict.timing and (replaced := verdict.timing.replaced):
        yield f"{replaced.speedup.value:.2f}x over the program before, {replaced.speedup.verdict}"


def speedups(verdict: Verdict) -> Iterator[str]:
    """``1.20x over eager``, for each baseline."""
    for name, ratio in verdict.timing.speedups.items() if verdict.timing else ():
        yield f"{ratio.value:.2f}x over {name}"


def built(verdict: Verdict) -> Iterator[str]:
    """How long its build took; nothing of one that failed."""
    if verdict.build is not None and verdict.build.ok:
        yield "build cached" if verdict.build.cached else f"built in {verdict.build.seconds:.1f} s"
