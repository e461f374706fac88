"""``stitch verify``."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stitch_tui.commands.output import Json, say
from stitch_tui.commands.run import Device, Sets

if TYPE_CHECKING:
    from stitch_tui.tools.verdict import Verdict

Candidate = Annotated[Path, typer.Argument(metavar="FILE", help="A .cu, or a Python file with ModelNew.")]
Reference = Annotated[str, typer.Option("--reference", metavar="REF", help="Default: reference.path.")]


def verify(
    candidate: Candidate,
    reference: Reference = "",
    device: Device = "",
    sets: Sets = None,
    json: Json = False,
) -> int:
    """Judge a candidate, from any author, against a reference.

    Exits 0 only when it is correct.  A kernel of a bundle is held against its own subtask, any
    other .cu against the whole reference.  Progress goes to stderr.
    """
    from stitch_tui.commands.run import chosen_reference, flags
    from stitch_tui.config import load
    from stitch_tui.verify import exit_code, verify_file

    settings = load(Path.cwd(), flags=flags(device, sets or [])).settings
    chosen = chosen_reference(reference, settings.reference.path)
    verdict = asyncio.run(verify_file(Path.cwd(), settings, candidate, chosen, _progress))
    if json:
        typer.echo(verdict.model_dump_json())
    else:
        _print(verdict)
    return exit_code(verdict)


def _progress(event: str, data: dict[str, object]) -> None:
    if event == "stage":
        typer.echo(f"  {data['stage']}", err=True)
    elif event == "waiting":
        typer.echo(f"  waiting for the GPU: {data['holder']}", err=True)


def _print(verdict: "Verdict") -> None:
    from stitch_tui.headless import describe

    say(describe(verdict, reason=not verdict.findings))
    for finding in verdict.findings:
        place = ":".join(str(part) for part in (finding.file, finding.line) if part)
        say("  " + ": ".join(part for part in (place, finding.where, finding.message) if part))
    for reason in verdict.unchecked:
        say(f"  not checked: {reason}")
