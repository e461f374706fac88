"""``stitch verify`` and ``stitch recheck``."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stitch_tui.commands.history import Best as Number
from stitch_tui.commands.history import Session
from stitch_tui.commands.output import Json, Markdown, Why, fields, one_form, one_line, say, say_json, table
from stitch_tui.commands.run import Device, Sets

if TYPE_CHECKING:
    from stitch_tui.agents.diagnosis import Work
    from stitch_tui.agents.settings import Settings
    from stitch_tui.tools.errors import ExitCode
    from stitch_tui.tools.profiling.profile import Profile as Measured
    from stitch_tui.verify import Judged

Candidate = Annotated[Path, typer.Argument(metavar="FILE", help="A .cu, or a Python file with ModelNew.")]
Profile = Annotated[
    bool,
    typer.Option("--profile", help="Say what limits a correct one; needs a GPU, nsys and ncu."),
]
Archs = Annotated[
    str,
    typer.Option("--arch", metavar="LIST", help="Only build it, for sm_80,sm_90,...: no GPU, no reference."),
]
Reference = Annotated[str, typer.Option("--reference", metavar="REF", help="Default: reference.path.")]


def verify(
    candidate: Candidate,
    reference: Reference = "",
    device: Device = "",
    profile: Profile = False,
    arch: Archs = "",
    why: Why = False,
    sets: Sets = None,
    json: Json = False,
    markdown: Markdown = False,
) -> int:
    """Judge a candidate, from any author, against a reference.

    Exits 0 when it is correct, 1 when not, 3 when this machine cannot judge it, 7 when that is
    unproven.  A kernel of a bundle is held against its own subtask, any other .cu against the whole
    reference.  Progress goes to stderr.  With --arch it is only built.
    """
    from stitch_tui.commands.run import chosen_reference, flags
    from stitch_tui.config import load
    from stitch_tui.tools.errors import UsageError
    from stitch_tui.verify import exit_code, verify_file
    from stitch_tui.view.judgement import markdown as in_markdown
    from stitch_tui.view.judgement import reasons

    one_form(json=json, markdown=markdown)
    settings = load(Path.cwd(), flags=flags(device, sets or [])).settings
    if arch:
        if profile:
            raise UsageError("--arch only builds: there is nothing to profile", advice="leave out --profile")
        return _across(settings, candidate, arch.split(","), json=json, markdown=markdown, why=why)
    chosen = chosen_reference(reference, settings.reference.path)
    judging = verify_file(Path.cwd(), settings, candidate, chosen, _progress, profile=profile)
    judged = asyncio.run(judging)
    code = exit_code(judged.verdict)
    if json:
        say_json(_as_json(judged, code, why=why))
    elif markdown:
        say(in_markdown(judged.verdict, judged.work, code, why=why))
    else:
        _print(judged)
        for reason in reasons(judged.verdict, judged.work, code) if why else ():
            say(f"  why: {reason}")
    return code


def recheck(
    number: Number = "best",
    session: Session = None,
    device: Device = "",
    sets: Sets = None,
    json: Json = False,
) -> int:
    """Judge an iteration of the past again, on this machine as it is now.

    Exits 1 when it drifted: no longer correct, or clearly slower on the same device.
    """
    from stitch_tui.commands.run import flags
    from stitch_tui.config import load
    from stitch_tui.recheck import recheck as again
    from stitch_tui.tools.history import History
    from stitch_tui.view.verdict_line import describe

    settings = load(Path.cwd(), flags=flags(device, sets or [])).settings
    history = History.open(Path.cwd(), prefix=settings.git.branch_prefix, author=settings.git.author)
    done = asyncio.run(again(Path.cwd(), settings, history, number, session, _progress))
    if json:
        say_json(
            {"before": fields(done.before), "now": fields(done.now), "drift": done.drift, "notes": done.notes}
        )
        return done.exit_code
    say(f"then  {done.before.subject}")
    say(f"now   {describe(done.now)}")
    for label, lines in (("drift", done.drift), ("note", done.notes)):
        for line in lines:
            say(f"{label}  {line}")
    return done.exit_code


def _across(
    settings: "Settings", candidate: Path, archs: list[str], *, json: bool, markdown: bool, why: bool
) -> int:
    from stitch_tui.verify import exit_code_across, verify_across
    from stitch_tui.view.across import as_json, as_markdown, criteria, rows

    found = asyncio.run(verify_across(settings, candidate, archs))
    if json:
        say_json(as_json(found, why=why))
    elif markdown:
        say(as_markdown(found, why=why))
    else:
        table([tuple(map(one_line, row)) for row in rows(found)])
        for reason in criteria(found) if why else ():
            say(f"why: {reason}")
    return exit_code_across(found)


def _progress(event: str, data: dict[str, object]) -> None:
    if event == "stage":
        typer.echo(f"  {data['stage']}", err=True)
    elif event == "profiling":
        typer.echo(f"    {data['tool']}: {data['reason']}", err=True)
    elif event == "waiting":
        typer.echo(f"  waiting for the GPU: {data['holder']}", err=True)


def _as_json(judged: "Judged", code: "ExitCode", *, why: bool) -> dict[str, Any]:
    """The verdict's fields, and what the rules make of its profile."""
    from stitch_tui.view.judgement import diagnoses, reasons

    verdict = judged.verdict
    told: dict[str, Any] = fields(verdict)
    if verdict.profile is not None:
        told["diagnosis"] = diagnoses(verdict.profile, judged.work)
    return told | ({"why": reasons(verdict, judged.work, code)} if why else {})


def _print(judged: "Judged") -> None:
    from stitch_tui.view.verdict_line import describe

    verdict = judged.verdict
    say(describe(verdict, reason=not verdict.findings))
    for finding in verdict.findings:
        place = ":".join(str(part) for part in (finding.file, finding.line) if part)
        say("  " + ": ".join(part for part in (place, finding.where, finding.message) if part))
    for reason in verdict.unchecked:
        say(f"  not checked: {reason}")
    if verdict.profile is not None:
        _print_profile(verdict.profile, judged.work)


def _print_profile(profile: "Measured", work: "Work") -> None:
    from stitch_tui.agents.diagnosis import diagnose
    from stitch_tui.tools.profiling.summary import lines

    for line in lines(profile):
        say(f"  {line}")
    for found in diagnose(profile, work):
        say(f"  {found.disease}: {found.evidence}\n    {found.change}")
