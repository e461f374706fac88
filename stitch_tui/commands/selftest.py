"""``stitch selftest``."""

import asyncio
from dataclasses import asdict
from pathlib import Path

import typer

from stitch_tui.commands.output import Json, say, say_json
from stitch_tui.commands.run import Device


def selftest(device: Device = "", json: Json = False) -> int:
    """Judge known candidates: are the Verifier's verdicts right on this machine?

    Honest kernels must pass, hacks must be caught and bugs named.  Takes minutes.  Exits 0 when all of them
    got the verdict they must get.
    """
    from stitch_tui.commands.run import flags
    from stitch_tui.config import load
    from stitch_tui.tools.errors import ExitCode
    from stitch_tui.tools.gpu import choose_device
    from stitch_tui.tools.selftest import Row, passed
    from stitch_tui.tools.selftest import selftest as run

    settings = load(Path.cwd(), flags=flags(device, [])).settings
    chosen = choose_device(settings.device)

    def told(row: Row) -> None:
        if not json:
            mark = "ok   " if row.good else "WRONG"
            typer.echo(f"{mark} {row.kind:<7}{row.name:<33}{row.found}  [{row.seconds:.1f} s]")

    rows = asyncio.run(run(chosen, settings.reference.python, told))
    good = sum(row.good for row in rows)
    if json:
        say_json({"device": str(chosen), "passed": passed(rows), "rows": [asdict(row) for row in rows]})
    else:
        say(f"{good} of {len(rows)} as they must be, on {chosen}")
    return ExitCode.GOAL_MET if passed(rows) else ExitCode.GOAL_NOT_MET
