"""A profile in words and rows: what the screen, ``stitch profile`` and ``stitch verify`` show of it."""

from collections.abc import Iterator

from stitch_tui.agents.diagnosis import diagnose
from stitch_tui.plain_text import one_line
from stitch_tui.tools.profiling.profile import Evidence, Profile, SystemProfile, Trace
from stitch_tui.view.wording import bytes_text, duration_us, percent

SHOWN = 12
"""Kernels, and calls."""
NAME = 80
"""Letters of a kernel's name."""
Rows = list[tuple[str, ...]]


def limit_sentence(system: SystemProfile) -> str:
    """Launch-bound, host-bound, or neither, with the numbers that say so."""
    found = diagnose(Profile(evidence=Evidence.NONE, why="", system=system))
    if found:
        return f"{found[0].disease}: {found[0].evidence}"
    busy = f"the device is busy {percent(system.busy_share)} of a run"
    return f"neither launch- nor host-bound: {busy}, so its kernels are the limit"


def trace_rows(system: SystemProfile) -> Rows:
    """A run in figures: time, busy share, launches, pauses."""
    pauses = f"{system.gaps}, {duration_us(system.gap_us)}, the longest {duration_us(system.longest_gap_us)}"
    return [
        ("a run takes", duration_us(system.wall_us)),
        ("device busy", f"{percent(system.busy_share)}, {duration_us(system.busy_us)}"),
        ("launches", f"{system.launches}, {duration_us(system.launch_us)} of the host's time"),
        ("pauses", pauses),
    ]


def tables(system: SystemProfile) -> Iterator[tuple[str, Rows]]:
    """Titles and rows, a head first, of what a trace holds: kernels, calls, copies, subtasks' ranges."""
    total = sum(kernel.time_us for kernel in system.kernels) or 1.0
    if system.ranges:
        ranges = [
            (r.name, str(r.launches), duration_us(r.time_us), percent(r.time_us / total))
            for r in system.ranges
        ]
        yield "Subtasks in it", [("subtask", "kernels", "time", "share"), *ranges]
    kernels = [
        (
            one_line(k.kernel)[:NAME],
            str(k.launches),
            duration_us(k.time_us),
            percent(k.time_us / total),
            f"{k.blocks} x {k.threads}",
        )
        for k in system.kernels[:SHOWN]
    ]
    yield "Kernels", [("kernel", "launches", "time", "share", "blocks x threads"), *kernels]
    if system.calls:
        calls = [(one_line(c.call), str(c.count), duration_us(c.time_us)) for c in system.calls[:SHOWN]]
        yield "CUDA calls", [("call", "count", "time"), *calls]
    if system.copies:
        copies = [
            (one_line(c.kind), str(c.count), duration_us(c.time_us), bytes_text(c.nbytes))
            for c in system.copies
        ]
        yield "Copies", [("kind", "count", "time", "size"), *copies]


def evidence_sentence(trace: Trace) -> str:
    """Who traced, and why nobody better did."""
    if trace.system is None:
        return f"no trace: {one_line(trace.why) or 'nobody looked'}"
    return f"traced by {trace.evidence}" + (f", as {one_line(trace.why)}" if trace.why else "")


def level(profile: Profile | None) -> str:
    """``profile by ncu 2025.3.1``: the evidence level in a few words."""
    if profile is None:
        return "no profile"
    if profile.evidence is Evidence.NONE:
        return "no profile worked"
    return f"profile by {profile.tool or profile.evidence}"
