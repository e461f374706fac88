"""What the reference's time goes into: its nodes alone, and whole passes; measured once a session."""

from pathlib import Path

from pydantic import ValidationError

from stitch_tui.agents import events
from stitch_tui.agents.bench import OpenBench
from stitch_tui.agents.record import Record
from stitch_tui.agents.reference_times import ReferenceTimes
from stitch_tui.tools import reference as references
from stitch_tui.tools.atomic_write import replace_file
from stitch_tui.tools.gpu import EmulatorDevice
from stitch_tui.tools.graph import DType, Graph
from stitch_tui.tools.profiling.profile import Trace
from stitch_tui.tools.profiling.system import of_reference

MEASURE_SECONDS = 10.0
"""Longest time for measuring the reference's nodes."""


async def measured_reference(opened: OpenBench, record: Record, folder: Path) -> ReferenceTimes:
    """Times of nodes and of the whole; in a resumed session those of its beginning.

    For the emulator nothing is measured: a CPU's times say nothing of a GPU's, and change from run to run.
    """
    path = folder / "reference.json"
    if record.session.sha256:
        try:
            return ReferenceTimes.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            record.emit(events.Warned(text="the reference is measured again: its first times are lost"))
    variants = await references.variants(opened.judge)
    times = await times_of(opened)
    replace_file(path, times.model_dump_json().encode())
    graph, opaque = times.graph, opened.exported.opaque
    timed = sorted((n for n in graph.nodes if n.time_us is not None), key=lambda node: -(node.time_us or 0.0))
    record.emit(
        events.ReferenceProfiled(
            sha256=opened.summary.sha256,
            nodes=len(graph.nodes),
            time_us=sum(node.time_us or 0.0 for node in timed) if timed else None,
            opaque=f"{opaque.why} ({opaque.where})" if opaque else "",
            variants=tuple(variant.name for variant in variants.variants),
            notes=(*(note.text for note in opened.summary.notes), *variants.notes),
            hottest=tuple(
                {"node": n.id, "op": n.op, "time_us": n.time_us, "module": n.module} for n in timed[:5]
            ),
            trace=times.trace,
        )
    )
    return times


async def times_of(opened: OpenBench) -> ReferenceTimes:
    """The open reference, measured now."""
    return ReferenceTimes(graph=await _measured(opened), trace=await _traced(opened))


async def _traced(opened: OpenBench) -> Trace:
    if isinstance(opened.device, EmulatorDevice):
        return Trace(why="nothing is timed on the emulator")
    async with opened.bench.gpu("profiling the reference", alone=True):
        return await of_reference(opened.bench, opened.options, opened.summary.forward_seconds)


async def _measured(opened: OpenBench) -> Graph:
    graph, device = opened.exported.graph, opened.device
    if isinstance(device, EmulatorDevice):
        return graph
    peaks = opened.peaks
    flops = {str(dtype): peaks.flops(dtype) for dtype in DType} if peaks else {}
    async with opened.bench.gpu("measuring the reference", alone=True):
        return await references.measured(
            opened.judge,
            graph,
            budget_s=MEASURE_SECONDS,
            bandwidth=peaks.bandwidth if peaks else None,
            peak_flops=flops,
        )
