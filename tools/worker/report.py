"""What a check is asked for and what it found: the JSON of the judge's method ``check``."""

from dataclasses import dataclass, field
from typing import Any

LARGEST = 1e308
"""Stands for an infinite error: JSON has no infinity."""


@dataclass(frozen=True)
class Trials:
    """Which trials to run: the ``trials`` of the method ``check``."""

    small: tuple[str, ...] = ()
    """Names of the small variants."""
    full: int = 2
    """Trials at full size, on the task's own inputs; 0 leaves the full size out (emulator)."""
    distributions: bool = True
    metamorphic: bool = True
    reduction: int = 0
    """Longest sum behind one output element; 0: from the graph's operators, else the operands' shapes."""
    decorative: bool = False
    """The candidate's kernels were emptied: one small trial, which must fail."""


@dataclass
class Report:
    """What a check found, as JSON; see `verdict.Verdict` for the words."""

    category: str = "correct"
    trials: list[dict[str, Any]] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    raw: list[dict[str, Any]] = field(default_factory=list)
    """The emulator's findings as it wrote them."""
    unchecked: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    protections: list[str] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)
    output: str = ""
