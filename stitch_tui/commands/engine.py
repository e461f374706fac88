"""The engine of this directory: ``stitch status``, ``attach``, ``stop``, ``pause``, ``resume``, ``ctl``."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stitch_tui.commands.output import Json, say, say_json, table

if TYPE_CHECKING:
    from stitch_tui.agents.commands import Command, Reply
    from stitch_tui.agents.events import Event
    from stitch_tui.agents.presence import Engine
    from stitch_tui.agents.state import Session

Subtask = Annotated[str, typer.Argument(metavar="ID", help="A subtask, such as s01.")]
Generation = Annotated[
    int | None,
    typer.Option("--generation", metavar="N", help="Refuse unless it still is the session's generation."),
]
Text = Annotated[str, typer.Option("--text", help="Why, or what to do instead.")]

ctl = typer.Typer(
    help="Steer the running engine: every decision of the session screen.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


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


def stop(json: Json = False) -> None:
    """End the run and wait until it has ended; the branch ends with the best iteration."""
    import os
    import signal

    from stitch_tui.session import found

    engine = found(Path.cwd())
    if not engine.session:  # still opening the reference: there is no run to stop yet
        os.kill(engine.pid, signal.SIGTERM)
        say_json({"stopped": engine.pid}) if json else say(f"stopped pid {engine.pid}, which was starting")
        return
    finished = asyncio.run(_stop(engine))
    if json:
        say_json(finished.model_dump(mode="json"))
    else:
        say(f"{finished.status}: {finished.reason}")


def pause(json: Json = False) -> None:
    """Wait after the current step and give up the GPU."""
    from stitch_tui.agents.commands import Pause

    _send(lambda generation: Pause(generation=generation), json)


def resume(json: Json = False) -> None:
    """Go on after a pause."""
    from stitch_tui.agents.commands import Resume

    _send(lambda generation: Resume(generation=generation), json)


@ctl.command(epilog="Example: stitch ctl approve")
def approve(
    subtask: Annotated[str, typer.Argument(metavar="[ID]", help="Default: the whole plan.")] = "",
    generation: Generation = None,
    json: Json = False,
) -> None:
    """Approve what is proposed."""
    from stitch_tui.agents.commands import Decide

    _send(lambda now: Decide(subtask=subtask, generation=now), json, generation)


@ctl.command(epilog="Example: stitch ctl reject s02 --text 'too small'")
def reject(
    subtask: Annotated[str, typer.Argument(metavar="[ID]", help="Default: the whole plan.")] = "",
    text: Text = "",
    generation: Generation = None,
    json: Json = False,
) -> None:
    """Reject what is proposed; the whole plan: the run ends."""
    from stitch_tui.agents.commands import Decide

    _send(lambda now: Decide(subtask=subtask, choice="reject", text=text, generation=now), json, generation)


@ctl.command(epilog="Example: stitch ctl edit s01 --title 'norm and gelu'")
def edit(
    subtask: Subtask,
    title: Annotated[str | None, typer.Option("--title", help="Its new title.")] = None,
    strategy: Annotated[str | None, typer.Option("--strategy", help="What the Coder is told.")] = None,
    nodes: Annotated[
        list[str] | None, typer.Option("--node", help="A graph node that it covers; repeatable.")
    ] = None,
    generation: Generation = None,
    json: Json = False,
) -> None:
    """Change a subtask of the plan."""
    from stitch_tui.agents.commands import Edit

    chosen = tuple(nodes) if nodes else None
    _send(
        lambda now: Edit(subtask=subtask, title=title, strategy=strategy, nodes=chosen, generation=now),
        json,
        generation,
    )


@ctl.command(epilog="Example: stitch ctl redirect s01 'one warp for each row' --now")
def redirect(
    subtask: Subtask,
    text: Annotated[str, typer.Argument(help="What to do instead.")],
    now: Annotated[bool, typer.Option("--now", help="Cancel the current step.")] = False,
    generation: Generation = None,
    json: Json = False,
) -> None:
    """Send the Coder another way: before its next build or launch, or now."""
    from stitch_tui.agents.commands import Redirect

    _send(lambda at: Redirect(subtask=subtask, text=text, now=now, generation=at), json, generation)


@ctl.command(epilog="Example: stitch ctl skip s02")
def skip(
    subtask: Subtask,
    undo: Annotated[bool, typer.Option("--undo", help="Take a skipped one back.")] = False,
    text: Text = "",
    generation: Generation = None,
    json: Json = False,
) -> None:
    """Leave a subtask to PyTorch."""
    from stitch_tui.agents.commands import Skip

    _send(lambda now: Skip(subtask=subtask, undo=undo, text=text, generation=now), json, generation)


@ctl.command(epilog="Example: stitch ctl reorder s03 1")
def reorder(
    subtask: Subtask,
    position: Annotated[int, typer.Argument(min=1, help="Its new place in the plan, from 1.")],
    generation: Generation = None,
    json: Json = False,
) -> None:
    """Move a subtask within the plan."""
    from stitch_tui.agents.commands import Reorder

    _send(lambda now: Reorder(subtask=subtask, position=position, generation=now), json, generation)


@ctl.command(epilog="Example: stitch ctl add 'final sigmoid' sigmoid")
def add(
    title: Annotated[str, typer.Argument(help="Its title.")],
    nodes: Annotated[list[str], typer.Argument(metavar="NODE...", help="The graph nodes that it covers.")],
    strategy: Annotated[str, typer.Option("--strategy", help="What the Coder is told.")] = "",
    generation: Generation = None,
    json: Json = False,
) -> None:
    """Add a subtask to the plan."""
    from stitch_tui.agents.commands import Add

    covered = tuple(nodes)
    _send(lambda now: Add(title=title, nodes=covered, strategy=strategy, generation=now), json, generation)


@ctl.command(epilog="Example: stitch ctl restore 3")
def restore(
    number: Annotated[int, typer.Argument(metavar="N", min=1, help="A correct iteration of a subtask.")],
    generation: Generation = None,
    json: Json = False,
) -> None:
    """Go on from an earlier iteration, which is committed anew."""
    from stitch_tui.agents.commands import Restore

    _send(lambda now: Restore(iteration=number, generation=now), json, generation)


def _send(make: Callable[[int], "Command"], json: bool, generation: int | None = None) -> None:
    """Send a command made for `generation`, else the session's present one, and print the reply.

    Raises:
        UsageError: no engine runs, or it refuses.
    """
    from stitch_tui.session import found
    from stitch_tui.tools.errors import UsageError

    engine = found(Path.cwd())
    try:
        reply = asyncio.run(_ask(engine, make, generation))
    except ValueError as fault:  # pydantic's: a text that is too long, an empty title
        raise UsageError("not a command", why=str(fault).splitlines()[-2].strip()) from fault
    if not reply.ok:
        raise UsageError(reply.text)
    if json:
        say_json(reply.model_dump(mode="json"))
    else:
        say(f"takes effect {reply.text}")


async def _ask(engine: "Engine", make: Callable[[int], "Command"], generation: int | None) -> "Reply":
    from stitch_tui.session import connected, state_of

    async with connected(engine) as connection:
        at = state_of(Path.cwd(), engine.session).generation if generation is None else generation
        return await connection.ask(make(at))


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


async def _stop(engine: "Engine") -> Any:
    """Stop the run; its last event."""
    from stitch_tui.agents.commands import Stop
    from stitch_tui.session import connected, state_of
    from stitch_tui.tools.errors import UsageError

    async with connected(engine) as connection:
        reply = await connection.ask(Stop(generation=state_of(Path.cwd(), engine.session).generation))
        if not reply.ok:
            raise UsageError(reply.text)
        events = [event async for event in connection.stream(reply.seq)]
    return events[-1]


def _data(engine: "Engine | None", session: "Session | None") -> dict[str, Any]:
    shown: dict[str, Any] = {"running": engine is not None, "pid": engine.pid if engine else None}
    if session is None:
        return shown
    subtasks = [s.model_dump(mode="json", exclude={"region"}) for s in session.subtasks]
    told = {"id", "reference", "device", "branch", "status", "reason", "generation", "coverage"}
    named = session.model_dump(mode="json", include=told)
    return shown | named | {"iterations": len(session.iterations), "subtasks": subtasks}


def _describe(engine: "Engine | None", session: "Session | None") -> None:
    if engine and not engine.session:
        say(f"an engine (pid {engine.pid}) is opening the reference")
    if session is None:
        say("no session yet" if not engine else "")
        return
    state = f"running as pid {engine.pid}" if engine else f"{session.status}: {session.reason}"
    if not engine and session.status == "running":
        state = "its engine was killed; go on with: stitch --auto --resume"
    say(f"session {session.id}: {state}")
    say(f"{session.reference} on {session.device}, branch {session.branch}, generation {session.generation}")
    if session.subtasks:
        table(
            (s.id, s.title, str(s.state), f"{s.attempts} attempts", f"best {s.best}" if s.best else "")
            for s in session.subtasks
        )
