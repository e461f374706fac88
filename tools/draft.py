"""A verdict in the making: what the stages add to it, and how it is concluded."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from stitch_tui.tools.summary import merged, nearness, summary
from stitch_tui.tools.verdict import Category, Finding, Flag, Trial, Verdict


class Draft:
    """Starts as correct; the first failure gives it its category.

    Args:
        device: as the verdict names it.
        functional: judged on the emulator.
    """

    def __init__(self, device: str, *, functional: bool) -> None:
        self._started = time.monotonic()
        self._stages: list[tuple[str, float]] = []
        flags = (Flag.FUNCTIONAL,) if functional else ()
        self.verdict = Verdict(category=Category.CORRECT, flags=flags, device=device, summary="")

    @property
    def run_seconds(self) -> float:
        """Of one run, as it was timed; 0: it was not."""
        timing = self.verdict.timing
        return timing.candidate.median_us / 1e6 if timing else 0.0

    def stage(self, name: str) -> None:
        """A stage begins, and the one before ends: the verdict says how long each took."""
        self._stages.append((name, time.monotonic()))

    def _stage_seconds(self) -> dict[str, float]:
        ends = [began for _, began in self._stages[1:]] + [time.monotonic()]
        seconds: dict[str, float] = {}
        for (name, began), end in zip(self._stages, ends, strict=True):
            seconds[name] = round(seconds.get(name, 0.0) + end - began, 2)
        return seconds

    def update(self, **changes: Any) -> None:
        """Replace fields of the verdict."""
        self.verdict = self.verdict.model_copy(update=changes)

    def add_trials(self, trials: Sequence[Trial], findings: Sequence[Finding] = ()) -> None:
        """Append comparisons, and warnings that end nothing."""
        self.update(trials=(*self.verdict.trials, *trials), findings=(*self.verdict.findings, *findings))

    def flag(self, flag: Flag) -> None:
        self.update(flags=(*self.verdict.flags, flag))

    def note(self, numbers: Mapping[str, Any]) -> None:
        """Add to what makes the verdict repeatable."""
        self.update(numbers=self.verdict.numbers | dict(numbers))

    def unchecked(self, *reasons: str) -> None:
        """Say what could not be checked, and why."""
        self.update(unchecked=merged(self.verdict.unchecked, reasons))

    def protected(self, protections: Sequence[str]) -> None:
        """Say what confined the candidate."""
        self.update(protections=merged(self.verdict.protections, protections))

    def fail(self, category: Category, findings: Sequence[Finding]) -> None:
        self.update(category=category, findings=tuple(findings))

    def ended(self, category: Category, reason: str) -> Verdict:
        """The verdict of a verification that could not go on."""
        self.update(category=category, summary=reason)
        return self.concluded()

    def concluded(self) -> Verdict:
        """The verdict, with its summary, nearest trial and flags."""
        if self._stages:
            self.note({"stage_seconds": self._stage_seconds()})
        draft = self.verdict
        nearest = max(draft.trials, key=nearness, default=None)
        partial = (Flag.PARTIAL,) if draft.unchecked and draft.correct else ()
        return draft.model_copy(
            update={
                "summary": draft.summary or summary(draft),
                "error": nearest.error if nearest else None,
                "error_limit": nearest.limit if nearest else None,
                "flags": draft.flags + partial,
                "seconds": time.monotonic() - self._started,
            }
        )
