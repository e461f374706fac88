"""The engine of this directory: ``stitch status``, ``attach``, ``stop``; and ``view`` of a past session."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stitch_tui import garbage
from stitch_tui.commands.output import Json, say, say_json, table
from stitch_tui.plain_text import count

if TYPE_CHECKING:
    from stitch_tui.agents.events import Event
    from stitch_tui.agents.presence import Engine
    from stitch_tui.agents.state import Session


def status(json: Json = False) -> int:
    """Print what the engine of this directory does, or how the last session ended.

    Exits 1 when no engine runs.
    """
    from stitch_tui.agents import journal, presence
    from stitch_tui.session import state_of

    engine = presence.running(Path.cwd())
    name = engine.session if engine else next(iter(journal.sessions(Path.cwd())), "")
    session = state_of(Path.cwd(), name) if name else None
    if json:
        say_json(_data(engine, session))
    else:
        _describe(engine, session)
    return 0 if engine else 1


def attach(json: Json = False) -> int:
    """Print the running session from its beginning, as it goes on.

    Ctrl+C ends the watching and not the run.  Exits with the session's exit code.
    """
    from stitch_tui.headless import NdjsonPrinter, PlainPrinter

    try:
        return asyncio.run(_watch(NdjsonPrinter() if json else PlainPrinter()))
    except KeyboardInterrupt:
        typer.echo("detached; the run goes on (stitch attach, stitch stop)", err=True)
        return 0


def plain() -> int:
    """Print the running session as lines and do what typed lines say; exits with the session's exit code."""
    from stitch_tui.linear import LEAVE, Linear
    from stitch_tui.link import EngineFeed
    from stitch_tui.session import found

    engine = found(Path.cwd())

    async def watch() -> int:
        return await Linear(EngineFeed(engine, Path.cwd())).run()

    try:
        return asyncio.run(watch())
    except KeyboardInterrupt:
        typer.echo(LEAVE, err=True)
        return 0


def stop(json: Json = False) -> None:
    """End the run and wait until it has ended; the branch ends with the best iteration."""
    from stitch_tui.session import found

    engine = found(Path.cwd())
    if not engine.session:  # still opening the reference: there is no run to stop yet
        _end(engine.pid)
        say_json({"stopped": engine.pid}) if json else say(f"stopped pid {engine.pid}, which was starting")
        return
    finished = asyncio.run(_stop(engine))
    if json:
        say_json(finished.model_dump(mode="json"))
    else:
        say(f"{finished.status}: {finished.reason}")


def view(
    session: Annotated[str, typer.Argument(metavar="[SESSION]", help="Default: the latest one.")] = "",
    json: Json = False,
) -> int:
    """Show a session from its journal again: on the screen, or as lines where there is no terminal.

    Exits as the session did.
    """
    import sys

    from stitch_tui.agents import journal
    from stitch_tui.session import journal_of

    path = journal_of(Path.cwd(), session)
    if not json and sys.stdin.isatty() and sys.stdout.isatty():
        garbage.rest()
        from stitch_tui.app import show
        from stitch_tui.config import load
        from stitch_tui.link import JournalFeed
        from stitch_tui.view.drafts import Drafts

        return show(JournalFeed(path), Path.cwd(), load(Path.cwd(), refuse=False).settings, Drafts(None))
    from stitch_tui.agents.events import SessionFinished
    from stitch_tui.headless import NdjsonPrinter, PlainPrinter

    printer, code = NdjsonPrinter() if json else PlainPrinter(), 1
    for event in journal.read(path):
        printer(event)
        code = event.exit_code if isinstance(event, SessionFinished) else code
    return code


async def _watch(show: Callable[["Event"], None]) -> int:
    from stitch_tui.agents.events import SessionFinished
    from stitch_tui.session import connected, found

    code = 1
    async with connected(found(Path.cwd())) as connection:
        async for event in connection.stream():
            show(event)
            if isinstance(event, SessionFinished):
                code = event.exit_code
    return code


def _end(pid: int) -> None:
    """Have an engine that starts end, and wait for that."""
    import os
    import select
    import signal
    from contextlib import suppress

    with suppress(ProcessLookupError):  # it has ended already
        watched = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(watched, signal.SIGTERM)
            select.select([watched], [], [])
        finally:
            os.close(watched)


async def _stop(engine: "Engine") -> Any:
    """Stop the run; its last event."""
    from stitch_tui.agents.commands import Attach, Reply, Stop
    from stitch_tui.agents.events import SessionFinished
    from stitch_tui.session import FROM_NOW_ON, Gone, connected, state_of
    from stitch_tui.tools.errors import UsageError

    async with connected(engine) as connection:
        # watch first: once told to stop, the engine may be gone before the next command reaches it
        await connection.ask(Attach(since=FROM_NOW_ON))
        connection.post(Stop(generation=state_of(Path.cwd(), engine.session).generation))
        async for line in connection.lines():
            if isinstance(line, Reply) and not line.ok:
                raise UsageError(line.text)
            if isinstance(line, SessionFinished):
                return line
    raise Gone


def _data(engine: "Engine | None", session: "Session | None") -> dict[str, Any]:
    shown: dict[str, Any] = {"running": engine is not None, "pid": engine.pid if engine else None}
    if session is None:
        return shown
    subtasks = [s.model_dump(mode="json", exclude={"region"}) for s in session.subtasks]
    told = {"id", "reference", "device", "branch", "status", "reason", "paused", "generation", "coverage"}
    named = session.model_dump(mode="json", include=told)
    return shown | named | {"iterations": len(session.iterations), "subtasks": subtasks}


def _describe(engine: "Engine | None", session: "Session | None") -> None:
    if engine and not engine.session:
        say(f"an engine (pid {engine.pid}) is opening the reference")
    if session is None:
        say("no session yet" if not engine else "")
        return
    paused = ", paused" if session.paused else ""
    state = f"running as pid {engine.pid}{paused}" if engine else f"{session.status}: {session.reason}"
    if not engine and session.status == "running":
        state = "its engine was killed; go on with: stitch --auto --resume"
    say(f"session {session.id}: {state}")
    say(f"{session.reference} on {session.device}, branch {session.branch}, generation {session.generation}")
    if session.subtasks:
        table(
            (s.id, s.title, str(s.state), count(s.attempts, "attempt"), f"best {s.best}" if s.best else "")
            for s in session.subtasks
        )
