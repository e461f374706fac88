"""``stitch profile``."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stitch_tui.commands.output import Json, Markdown, Why, one_form, say, say_json, table
from stitch_tui.commands.run import Device, Sets

if TYPE_CHECKING:
    from stitch_tui.agents.reference_times import ReferenceTimes
    from stitch_tui.agents.settings import Settings

Reference = Annotated[str, typer.Argument(metavar="[REF]", help="Default: reference.path.")]


def profile(
    reference: Reference = "",
    device: Device = "",
    why: Why = False,
    sets: Sets = None,
    json: Json = False,
    markdown: Markdown = False,
) -> int:
    """Measure where a reference's time goes: whole passes, kernels, operators alone.

    Exits 0 once it is measured, with whatever evidence could be had.  Needs a GPU; without one it
    exits 3.
    """
    from stitch_tui.commands.run import chosen_reference, flags
    from stitch_tui.config import load
    from stitch_tui.tools.errors import ExitCode
    from stitch_tui.view.profile_text import as_json, as_markdown, grounds

    one_form(json=json, markdown=markdown)
    settings = load(Path.cwd(), flags=flags(device, sets or [])).settings
    chosen = chosen_reference(reference, settings.reference.path)
    times = asyncio.run(_measured(settings, chosen))
    if json:
        say_json(as_json(times) | ({"why": grounds(times.trace)} if why else {}))
    elif markdown:
        say(as_markdown(times, why=why))
    else:
        _print(times)
        for reason in grounds(times.trace) if why else ():
            say(f"why: {reason}")
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
    from stitch_tui.view.profile_text import evidence_sentence, limit_sentence, node_rows, tables, trace_rows

    say(evidence_sentence(times.trace))
    if system := times.trace.system:
        say(limit_sentence(system))
        table(trace_rows(system))
        for _, rows in tables(system):
            say()
            table(rows)
    if rows := node_rows(times.graph):
        say()
        table(rows)
