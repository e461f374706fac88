"""``stitch profile``."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stitch_tui.commands.output import Json, one_line, say, say_json, table
from stitch_tui.commands.run import Device, Sets

if TYPE_CHECKING:
    from stitch_tui.agents.profile import ReferenceTimes
    from stitch_tui.agents.settings import Settings

Reference = Annotated[str, typer.Argument(metavar="[REF]", help="Default: reference.path.")]
SHOWN = 12
"""Kernels, and operators."""


def profile(reference: Reference = "", device: Device = "", sets: Sets = None, json: Json = False) -> int:
    """Measure where a reference's time goes: whole passes, kernels, operators alone.

    Needs a GPU; without one it exits 3.
    """
    from stitch_tui.commands.run import chosen_reference, flags
    from stitch_tui.config import load
    from stitch_tui.tools.errors import ExitCode

    settings = load(Path.cwd(), flags=flags(device, sets or [])).settings
    chosen = chosen_reference(reference, settings.reference.path)
    times = asyncio.run(_measured(settings, chosen))
    if json:
        nodes = [{"node": n.id, "op": n.op, "time_us": n.time_us} for n in times.graph.nodes]
        say_json({"trace": times.trace.model_dump(mode="json"), "nodes": nodes})
    else:
        _print(times)
    return ExitCode.GOAL_MET


async def _measured(settings: "Settings", reference: str) -> "ReferenceTimes":
    from stitch_tui.agents.bench import open_bench
    from stitch_tui.agents.profile import times_of
    from stitch_tui.tools.errors import EnvironmentFault

    async with open_bench(Path.cwd(), settings, reference) as opened:
        if opened.bench.cuda is None:
            raise EnvironmentFault(
                "nothing is timed without a GPU", advice="stitch doctor says what is missing"
            )
        return await times_of(opened)


def _print(times: "ReferenceTimes") -> None:
    from stitch_tui.tools.profiling.summary import system_line

    trace = times.trace
    if trace.system is None:
        say(f"no trace: {trace.why}")
    else:
        say(system_line(trace.system, trace.evidence))
        if trace.why:
            say(f"by {trace.evidence}: {trace.why}")
        shown = trace.system.kernels[:SHOWN]
        rows = [(one_line(k.kernel)[:80], str(k.launches), f"{k.time_us:.1f}") for k in shown]
        table([("kernel", "launches", "us"), *rows])
    timed = sorted((n for n in times.graph.nodes if n.time_us), key=lambda node: -(node.time_us or 0))
    if timed:
        alone = [(n.id, n.op.removeprefix("aten."), f"{n.time_us:.1f}", n.module) for n in timed[:SHOWN]]
        say()
        table([("operator alone", "op", "us", "module"), *alone])
