"""A trace as spans on one clock, and what they say together: busy device, gaps, launches, copies."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from stitch_tui.tools.profiling.profile import CallTime, CopyTime, KernelTime, RangeTime, SystemProfile

MOST_KERNELS = 50
LAUNCHING = ("cudaLaunch", "cudaGraphLaunch", "cuLaunch", "cuGraphLaunch")
"""What calls begin with that put kernels on the device."""


@dataclass(frozen=True)
class Span:
    """Something that host or device did: nanoseconds on the trace's clock.

    Raises:
        ValueError: it has no such times, or ends before it begins.
    """

    name: str
    start_ns: float
    end_ns: float
    blocks: int = 0
    threads: int = 0
    nbytes: int = 0
    range: str = ""
    """Of a kernel: the innermost NVTX range that it was launched in."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.start_ns) and self.start_ns <= self.end_ns < math.inf):
            raise ValueError(f"{self.name} is from {self.start_ns} to {self.end_ns} ns")

    @property
    def us(self) -> float:
        return (self.end_ns - self.start_ns) / 1e3


@dataclass(frozen=True)
class Spans:
    """A trace, whoever wrote it."""

    kernels: Sequence[Span] = field(default_factory=list)
    copies: Sequence[Span] = field(default_factory=list)
    """Fills too; named by kind, ``HtoD`` or ``fill``."""
    calls: Sequence[Span] = field(default_factory=list)
    """Of the CUDA API, on the host."""


class NoKernel(ValueError):
    """A trace of a device that computed nothing."""


def system_of(spans: Spans, runs: int) -> SystemProfile:
    """Where the time of a run goes, averaged over `runs` runs that the trace holds.

    Raises:
        NoKernel: the trace holds none.
    """
    if not spans.kernels:
        raise NoKernel("the trace holds no kernel")
    device = sorted([*spans.kernels, *spans.copies], key=lambda span: span.start_ns)
    launching = [call for call in spans.calls if call.name.startswith(LAUNCHING)]
    first = min(span.start_ns for span in (*device, *launching))
    last = max(span.end_ns for span in device)
    busy, gaps = _covered(device)
    return SystemProfile(
        runs=runs,
        wall_us=(last - first) / 1e3 / runs,
        busy_us=busy / 1e3 / runs,
        launch_us=sum(call.us for call in launching) / runs,
        launches=round(len(spans.kernels) / runs),
        gaps=round(len(gaps) / runs),
        gap_us=sum(gaps) / 1e3 / runs,
        longest_gap_us=max(gaps, default=0.0) / 1e3,
        kernels=tuple(_kernels(spans.kernels, runs)[:MOST_KERNELS]),
        calls=tuple(
            CallTime(call=name, count=round(len(group) / runs), time_us=sum(s.us for s in group) / runs)
            for name, group in _by_time(spans.calls)
        ),
        copies=tuple(
            CopyTime(
                kind=name,
                count=round(len(group) / runs),
                time_us=sum(s.us for s in group) / runs,
                nbytes=sum(s.nbytes for s in group) // runs,
            )
            for name, group in _by_time(spans.copies)
        ),
        ranges=tuple(
            RangeTime(name=name, launches=round(len(group) / runs), time_us=sum(s.us for s in group) / runs)
            for name, group in _by_time([replace(s, name=s.range) for s in spans.kernels if s.range])
        ),
    )


def _covered(device: Iterable[Span]) -> tuple[float, list[float]]:
    """Nanoseconds in which the device did something, and its pauses; spans in the order of their starts."""
    busy, end, gaps = 0.0, None, []
    for span in device:
        if end is not None and span.start_ns > end:
            gaps.append(span.start_ns - end)
        begin = span.start_ns if end is None else max(span.start_ns, end)
        busy += max(0.0, span.end_ns - begin)
        end = span.end_ns if end is None else max(end, span.end_ns)
    return busy, gaps


def _kernels(spans: Sequence[Span], runs: int) -> list[KernelTime]:
    found = []
    for name, group in _by_time(spans):
        longest = max(group, key=lambda span: span.us)
        found.append(
            KernelTime(
                kernel=name,
                launches=max(1, round(len(group) / runs)),
                time_us=sum(span.us for span in group) / runs,
                blocks=longest.blocks,
                threads=longest.threads,
            )
        )
    return found


def _by_time(spans: Sequence[Span]) -> list[tuple[str, list[Span]]]:
    """Spans of one name together, those that take longest first."""
    name: Callable[[Span], str] = lambda span: span.name  # noqa: E731
    grouped = [(key, list(group)) for key, group in groupby(sorted(spans, key=name), key=name)]
    return sorted(grouped, key=lambda pair: -sum(span.us for span in pair[1]))
