"""Words, glyphs and numbers of the session screen; colour never carries meaning alone."""

from stitch_tui.agents.state import Iteration, SubtaskState
from stitch_tui.tools.iteration import Outcome
from stitch_tui.tools.verdict import Flag, Ratio, Samples, Timing, Verdict

GLYPH = {
    SubtaskState.PROPOSED: "?",
    SubtaskState.APPROVED: "○",
    SubtaskState.CODING: "◔",
    SubtaskState.BUILDING: "◑",
    SubtaskState.CHECKING: "◕",
    SubtaskState.MEASURING: "◉",
    SubtaskState.DONE: "✓",
    SubtaskState.SKIPPED: "–",
    SubtaskState.PAUSED: "‖",
    SubtaskState.FAILED: "✗",
}
OUTCOME = {
    Outcome.KEPT: "✓",
    Outcome.SLOWER: "↓",
    Outcome.WRONG: "✗",
    Outcome.ERROR: "!",
    Outcome.REDIRECTED: "↪",
    Outcome.CANCELLED: "–",
}
TONE = {
    SubtaskState.PROPOSED: "ask",
    SubtaskState.DONE: "pass",
    SubtaskState.FAILED: "fail",
    SubtaskState.SKIPPED: "quiet",
    SubtaskState.PAUSED: "ask",
    SubtaskState.APPROVED: "plain",
}
"""How a state looks; states of work are ``busy``."""
FUNCTIONAL = "functional, not timed"
BASELINE = {
    "eager": "eager",
    "compile": "torch.compile",
    "compile-reduce-overhead": "reduce-overhead",
    "eager-high": "eager, TF32",
    "compile-high": "compile, TF32",
}
EIGHTHS = " ▏▎▍▌▋▊▉"


def tone(state: SubtaskState) -> str:
    return TONE.get(state, "busy")


def bar(share: float, width: int) -> str:
    """A bar of `width` cells, filled to `share` (0-1) in steps of an eighth of a cell."""
    eighths = round(max(0.0, min(share, 1.0)) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (EIGHTHS[rest] if rest else "")).ljust(width)


def times(value: float) -> str:
    """``1.42x``."""
    return f"{value:.2f}x" if value < 100 else f"{value:.0f}x"


def duration_us(value: float) -> str:
    """Microseconds with the unit that reads best."""
    for limit, unit, factor in ((1e3, "µs", 1.0), (1e6, "ms", 1e-3)):
        if value < limit:
            return f"{value * factor:.4g} {unit}"
    return f"{value * 1e-6:.4g} s"


def interval_us(samples: Samples) -> str:
    """``812 µs [811, 814]``: the median and its 95 % interval."""
    scale = 1.0 if samples.median_us < 1e3 else 1e-3
    return f"{duration_us(samples.median_us)} [{samples.low_us * scale:.4g}, {samples.high_us * scale:.4g}]"


def percent(share: float) -> str:
    return f"{share * 100:.0f}%" if share >= 0.0995 or share == 0 else f"{share * 100:.1f}%"


def bytes_text(count: int) -> str:
    return f"{count / 1024:.1f} KB" if count >= 1024 else f"{count} B"


def best_ratio(timing: Timing) -> tuple[str, Ratio] | None:
    """The speedup over the fastest baseline, the one that counts, and that baseline's name."""
    name = timing.best_baseline
    return (name, timing.speedups[name]) if name in timing.speedups else None


def headline(verdict: Verdict | None) -> str:
    """The number that a row has room for: the speedup over the best baseline, or why there is none."""
    if verdict is None:
        return ""
    if verdict.timing and (found := best_ratio(verdict.timing)):
        return times(found[1].value)
    if verdict.correct:
        return "functional" if Flag.FUNCTIONAL in verdict.flags else "not timed"
    return str(verdict.category).replace("_", " ")


def error_of_limit(verdict: Verdict) -> str:
    """``5.3e-07 of 1.1e-05``; empty when nothing was compared."""
    if verdict.error is None or verdict.error_limit is None:
        return ""
    return f"{verdict.error:.1e} of {verdict.error_limit:.1e}"


def iteration_title(iteration: Iteration) -> str:
    """``#7 s03 attempt 2``."""
    about = f"{iteration.subtask} attempt {iteration.attempt}" if iteration.subtask else "program"
    return f"#{iteration.number} {about}"
