"""Steering the engine of this directory: ``stitch pause``, ``resume`` and ``ctl``."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stitch_tui.commands.output import Json, say, say_json

if TYPE_CHECKING:
    from stitch_tui.agents.commands import Command, Reply
    from stitch_tui.agents.presence import Engine

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
    """Send the Coder another way.

    Before its next build, launch or commit, or now.
    """
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
    nodes: Annotated[
        list[str],
        typer.Argument(metavar="NODE...", help="Graph nodes; or: host."),
    ],
    strategy: Annotated[str, typer.Option("--strategy", help="What the Coder is told.")] = "",
    generation: Generation = None,
    json: Json = False,
) -> None:
    """Add a subtask to the plan: for graph nodes, or with the word host for the program's host side."""
    from stitch_tui.agents.commands import Add

    covered = tuple(nodes)
    _send(lambda now: Add(title=title, nodes=covered, strategy=strategy, generation=now), json, generation)


@ctl.command(epilog="Example: stitch ctl autonomy ask-each")
def autonomy(
    mode: Annotated[str, typer.Argument(metavar="MODE", help="ask-each, ask-plan or auto.")],
    generation: Generation = None,
    json: Json = False,
) -> None:
    """Change how much the run asks; auto approves what is proposed."""
    from stitch_tui.agents.commands import SetAutonomy
    from stitch_tui.agents.settings import Autonomy
    from stitch_tui.tools.errors import UsageError

    if mode not in list(Autonomy):
        raise UsageError("no such mode", where=mode, advice=f"there is {', '.join(Autonomy)}")
    _send(lambda now: SetAutonomy(mode=Autonomy(mode), generation=now), json, generation)


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
