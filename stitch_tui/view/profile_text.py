"""A profile in words and rows: what the screen, ``stitch profile`` and ``stitch verify`` show of it."""

from collections.abc import Iterator
from typing import Any

from stitch_tui.agents.criteria import CRITERIA
from stitch_tui.agents.diagnosis import diagnose
from stitch_tui.agents.reference_times import ReferenceTimes
from stitch_tui.agents.state import Disease
from stitch_tui.plain_text import one_line
from stitch_tui.tools.graph import Graph
from stitch_tui.tools.profiling.profile import Evidence, Profile, SystemProfile, Trace
from stitch_tui.view.markdown import bullets, escaped
from stitch_tui.view.markdown import table as markdown_table
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
        return f"no trace: {one_line(trace.why) or 'none was asked for'}"
    return f"traced by {trace.evidence}" + (f", as {one_line(trace.why)}" if trace.why else "")


def level(profile: Profile | None) -> str:
    """``profile by ncu 2025.3.1``: the evidence level in a few words."""
    if profile is None:
        return "no profile"
    if profile.evidence is Evidence.NONE:
        return "no profile worked"
    return f"profile by {profile.tool or profile.evidence}"


def node_rows(graph: Graph) -> Rows:
    """Operators that were measured alone, the slowest first, below a head; nothing where none were."""
    timed = sorted((n for n in graph.nodes if n.time_us), key=lambda node: -(node.time_us or 0.0))
    rows = [
        (n.id, n.op.removeprefix("aten."), duration_us(n.time_us or 0.0), one_line(n.module))
        for n in timed[:SHOWN]
    ]
    return [("operator alone", "op", "time", "module"), *rows] if rows else []


def grounds(trace: Trace) -> list[str]:
    """Why the answer is what it is: who was asked, and the rule that the figures meet or not."""
    told = [evidence_sentence(trace)]
    if trace.system is None:
        return told
    found = diagnose(Profile(evidence=trace.evidence, why="", system=trace.system))
    told.append(limit_sentence(trace.system))
    told.append(f"the rule: {CRITERIA[found[0].disease if found else Disease.HOST_BOUND]}")
    told.append(found[0].change if found else "what wins is a faster kernel: `stitch --auto` writes them")
    return told


def as_json(times: ReferenceTimes) -> dict[str, Any]:
    nodes = [{"node": n.id, "op": n.op, "time_us": n.time_us} for n in times.graph.nodes]
    limit = limit_sentence(times.trace.system) if times.trace.system else ""
    return {"trace": times.trace.model_dump(mode="json"), "limit": limit, "nodes": nodes}


def as_markdown(times: ReferenceTimes, *, why: bool) -> str:
    """The whole profile of a reference."""
    parts = ["# Profile", "", escaped(evidence_sentence(times.trace))]
    if system := times.trace.system:
        parts += ["", escaped(limit_sentence(system)), "", *markdown_table([("", ""), *trace_rows(system)])]
        for title, rows in tables(system):
            parts += ["", f"## {title}", "", *markdown_table(rows)]
    if rows := node_rows(times.graph):
        parts += ["", "## Operators alone", "", *markdown_table(rows)]
    if why:
        parts += ["", "## Why", "", *bullets(grounds(times.trace))]
    return "\n".join(parts)
