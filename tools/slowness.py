"""Does the emulator need so long for an honest kernel, or does the kernel hang?  A generous estimate.

What the small shapes took is scaled to full size: by the elements to the power of 1.5, as the work of a
product of square matrices grows; and no less than what the emulator does in a second.
"""

from collections.abc import Mapping
from typing import Any

GENEROUS = 20.0
GROWTH = 1.5
RATE = {"emulator": 1e6, "correctness": 1e8}
"""FLOPs or elements a second, by stage: with all accesses watched, and without."""
FULL = "full"


def is_merely_slow(numbers: Mapping[str, Any], flops: float, deadline_s: float, stage: str) -> bool:
    """Could the full size take longer than `deadline_s` on the emulator without any fault?

    Args:
        numbers: of the judge's report: ``elements`` by variant, ``event_us`` by trial.
        flops: of the target at full size.
    """
    elements: Mapping[str, int] = numbers.get("elements", {})
    full = elements.get(FULL, 0)
    times = {name.rpartition("/")[2]: us for name, us in numbers.get("event_us", {}).items()}
    scaled = [
        us / 1e6 * (full / count) ** GROWTH
        for variant, us in times.items()
        if variant != FULL and (count := elements.get(variant, 0))
    ]
    seconds = max([*scaled, max(flops, float(full)) / RATE[stage]])
    return bool(GENEROUS * seconds >= deadline_s)
