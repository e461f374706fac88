"""``stitch replay``: a recorded session with models, run again without any endpoint."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from stitch_tui.commands.output import Json, one_line, say, say_json


def replay(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="Of this project; or its events.jsonl.")],
    device: Annotated[str, typer.Option("--device", metavar="KIND", help="auto, cuda or emulator.")] = "",
    detach: Annotated[bool, typer.Option("--detach", help="Run in the background: stitch shows it.")] = False,
    json: Json = False,
) -> int:
    """Run a session again with its models' recorded answers: no endpoint, no key, no network.

    Everything else is done anew, in a new session: builds, checks, commits.  Where the outcome of an
    iteration differs from the recorded one a line on stderr says so.  Exits as the run does.  With
    --detach it runs in the background, and `stitch` shows it as it shows any other.
    """
    from stitch_tui.agents import detached, engine, events, replay
    from stitch_tui.agents.state import Session
    from stitch_tui.commands.run import flags
    from stitch_tui.config import load
    from stitch_tui.headless import NdjsonPrinter, PlainPrinter

    recorded = replay.recording(Path.cwd(), session)
    settings = replay.settings_of(recorded, load(Path.cwd(), flags=flags(device, [])).settings)
    request = engine.Request(Path.cwd(), settings, reference=recorded.session.target)
    if detach:
        known = str(Path(session).resolve()) if session.endswith(".jsonl") else session
        name = detached.start(request, replays=known)
        say_json({"session": name}) if json else say(name)
        return 0
    emit = NdjsonPrinter() if json else PlainPrinter()
    now = Session()

    def heard(event: events.Event) -> None:
        nonlocal now
        now = event.applied_to(now)
        emit(event)

    with emit.ending():
        code = asyncio.run(engine.run(request, heard, engine.Parts(cast=replay.replaying(recorded))))
    for line in replay.differences(recorded.session, now):
        print(one_line(line), file=sys.stderr)
    return int(code)
