"""``stitch init`` and ``stitch doctor``."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from stitch_tui.commands.output import Json, say, say_json

Inputs = Annotated[
    str,
    typer.Option("--inputs", metavar="FILE.py:FUNCTION", help="Makes the model's inputs; writes an adapter."),
]
Init = Annotated[
    str, typer.Option("--init", metavar="FILE.py:FUNCTION", help="Makes the constructor's arguments.")
]


def init(
    reference: Annotated[str, typer.Argument(metavar="REF", help="file.py, file.py:Class or pkg.mod:Class.")],
    inputs: Inputs = "",
    arguments: Init = "",
    json: Json = False,
) -> None:
    """Write this project's stitch.toml for a reference.

    Overwrites nothing and runs nothing of yours.
    """
    from stitch_tui.project_init import initialise

    written = initialise(Path.cwd(), reference, inputs, arguments)
    if json:
        say_json({"written": [str(path) for path in written]})
    else:
        for path in written:
            say(f"wrote {path}")


def doctor(
    device: Annotated[str, typer.Option("--device", metavar="KIND", help="auto, cuda or emulator.")] = "",
    json: Json = False,
) -> int:
    """Check what stitch needs here, one line and a fix each.

    Each role that is a model is asked for one small answer, a model of vectors for one vector.  Exits 3
    when something that the chosen device needs is missing, 4 when only a model is.
    """
    from dataclasses import replace

    from stitch_tui.agents.endpoints import model_checks
    from stitch_tui.config import load
    from stitch_tui.tools.doctor import examine
    from stitch_tui.tools.errors import ExitCode

    settings = load(Path.cwd(), flags={"device.kind": device} if device else {}).settings
    device_report = asyncio.run(
        examine(Path.cwd(), settings.device.kind, settings.device.index, settings.reference.python)
    )
    models = tuple(asyncio.run(model_checks(settings)))
    report = replace(device_report, checks=(*device_report.checks, *models))
    if json:
        say_json(report.as_data())
    else:
        for check in report.checks:
            say(f"{check.state.glyph} {check.state:<8}{check.name:<18}{check.found}")
            if check.fix:
                say(f"{'':10}{'':18}fix: {check.fix}")
        say(report.verdict)
    if not device_report.ready:
        return ExitCode.ENVIRONMENT
    return ExitCode.GOAL_MET if report.ready else ExitCode.ENDPOINT
