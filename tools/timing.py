"""What the judge's timed blocks mean: medians, speedups with intervals, clocks while they ran."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

from stitch_tui.tools.gpu import nvml_session
from stitch_tui.tools.gpu_state import Sample, sample
from stitch_tui.tools.verdict import Beside, Ratio, Samples, Timing
from stitch_tui.tools.worker import samples

Blocks = Mapping[str, Sequence[Sequence[float]]]
"""Contestant -> microseconds of each launch, by blocks; blocks of one number ran side by side."""

REPLACED = "replaced"
"""The contestant that the candidate shall replace: a rival of the judge's method ``time``."""


class Clocks:
    """The GPU's state after each block, read beside the timing; nothing where NVML does not answer."""

    def __init__(self, uuid: str) -> None:
        self._uuid = uuid
        self.samples: dict[int, Sample] = {}

    def heard(self, event: str, data: Mapping[str, Any]) -> None:
        """Take in an event of the judge's: a sample after each block."""
        if event == "block" and self._uuid:
            self.samples[int(data["block"])] = sample(self._uuid)

    @property
    def throttled(self) -> dict[int, tuple[str, ...]]:
        """Blocks after which the GPU said that something lowers its clocks, and what."""
        return {block: found.throttled for block, found in self.samples.items() if found.throttled}

    def as_environment(self) -> dict[str, Any]:
        """Medians of what NVML said, for the verdict; empty when it said nothing."""
        told: dict[str, Any] = {}
        for field in ("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w", "power_limit_w"):
            values = [value for s in self.samples.values() if (value := getattr(s, field)) is not None]
            if values:
                told[field] = median(values)
        reasons = {reason for found in self.throttled.values() for reason in found}
        return told | ({"throttled": sorted(reasons)} if self.samples else {})


@contextmanager
def clocks(uuid: str) -> Iterator[Clocks]:
    """Clocks of that GPU, with NVML held open meanwhile; an empty `uuid` reads none."""
    with nvml_session() if uuid else _nothing():
        yield Clocks(uuid)


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def timing_of(report: Mapping[str, Any], observed: Clocks) -> Timing:
    """The judge's answer to ``time``, summed up.

    Blocks that ran throttled are left out of all contestants, unless more than half of them did: then
    nothing is left out, and the notes say so.
    """
    blocks, note = unthrottled(report["blocks"], sorted(observed.throttled))
    named = {name: summary(found) for name, found in blocks.items()}
    candidate = medians(blocks["candidate"])
    return Timing(
        candidate=named["candidate"],
        baselines={name: named[name] for name in report["baselines"]},
        speedups={name: speedup(medians(blocks[name]), candidate) for name in report["baselines"]},
        lower_precision={
            name: _beside(named[name], blocks[name], candidate) for name in report["lower_precision"]
        },
        replaced=_beside(named[REPLACED], blocks[REPLACED], candidate) if REPLACED in blocks else None,
        bind_us=report["bind_us"],
        environment=report["environment"] | observed.as_environment(),
        notes=(*report["notes"], *note),
    )


def _beside(found: Samples, blocks: Sequence[Sequence[float]], candidate: Sequence[float]) -> Beside:
    return Beside(samples=found, speedup=speedup(medians(blocks), candidate))


def unthrottled(blocks: Blocks, throttled: Sequence[int]) -> tuple[Blocks, tuple[str, ...]]:
    """The blocks that count, and a sentence where some do not or should not."""
    count = len(blocks["candidate"])
    slowed = [block for block in throttled if block < count]
    if not slowed:
        return blocks, ()
    if len(slowed) > count // 2:
        return blocks, (f"the GPU throttled in {len(slowed)} of {count} blocks: none was left out",)
    kept = [block for block in range(count) if block not in slowed]
    return (
        {name: [found[block] for block in kept] for name, found in blocks.items()},
        (f"{len(slowed)} of {count} blocks left out: the GPU throttled",),
    )


def medians(blocks: Sequence[Sequence[float]]) -> list[float]:
    """Of each block."""
    return [median(block) for block in blocks]


def summary(blocks: Sequence[Sequence[float]]) -> Samples:
    """All launches of one contestant."""
    return Samples.model_validate(samples.summary([t for b in blocks for t in b], medians(blocks)))


def speedup(baseline: Sequence[float], candidate: Sequence[float]) -> Ratio:
    """Of paired blocks' medians, baseline over candidate."""
    return Ratio.model_validate(samples.ratio(baseline, candidate))
