"""``stitch --auto``: a run without anyone watching (the hidden command ``run``), and the detached engine."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stitch_tui.commands.output import Json, say, say_json

if TYPE_CHECKING:
    from stitch_tui.agents.engine import Request

if TYPE_CHECKING:
    from stitch_tui.headless import NdjsonPrinter, PlainPrinter

Reference = Annotated[
    str,
    typer.Argument(
        metavar="[REF]",
        help="file.py, file.py:Class or pkg.mod:Class; default: reference.path. With --resume: a session.",
    ),
]
Device = Annotated[str, typer.Option("--device", metavar="KIND", help="auto, cuda or emulator.")]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting for this run; repeatable.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with a session: the one named, else the latest.")
]
Detach = Annotated[bool, typer.Option("--detach", help="Print the session's name and run in the background.")]


def run(
    reference: Reference = "",
    resume: Resume = False,
    detach: Detach = False,
    json: Json = False,
    device: Device = "",
    sets: Sets = None,
) -> int:
    """Plan, code, verify and commit until the goal or a limit is reached; asks nobody.

    Progress goes to stderr and the result to stdout; with --json stdout has one event a line, of
    which the last one is always session.finished.  Another terminal can watch and steer the run:
    stitch attach, status, pause, resume, stop, ctl.
    """
    from stitch_tui.headless import NdjsonPrinter, PlainPrinter

    if detach:
        with _signals():
            return _detach(_request(reference, resume, device, sets), json)
    emit = NdjsonPrinter() if json else PlainPrinter(project=Path.cwd())
    with emit.ending(), _signals():
        return _run(_request(reference, resume, device, sets), emit)


@contextmanager
def _signals() -> Iterator[None]:
    """A signal that comes while stitch still starts ends it as one that comes later does.

    The engine takes the signals over for as long as it runs.
    """
    import signal
    from types import FrameType

    from stitch_tui.tools.errors import ExitCode, StitchError

    def arrive(received: int, _: FrameType | None) -> None:
        error = StitchError("interrupted")
        error.exit_code = ExitCode(128 + received)
        raise error

    before = {name: signal.signal(name, arrive) for name in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def engine() -> int:
    """Be the engine that `stitch --auto --detach` starts: its request is on standard input."""
    from stitch_tui.agents.detached import main

    return main()


def _request(reference: str, resume: bool, device: str, sets: list[str] | None) -> "Request":
    from stitch_tui.config import load

    settings = load(Path.cwd(), flags=flags(device, sets or [])).settings
    chosen = "" if resume else chosen_reference(reference, settings.reference.path)

    from stitch_tui.agents.engine import Request

    return Request(Path.cwd(), settings, reference=chosen, resume=reference if resume else None)


def _run(request: "Request", emit: "NdjsonPrinter | PlainPrinter") -> int:
    from stitch_tui.agents import engine

    emit.doing("importing the reference and running it once")
    return int(asyncio.run(engine.run(request, emit)))


def _detach(request: "Request", json: bool) -> int:
    from stitch_tui.agents.detached import start

    session = start(request)
    if json:
        say_json({"session": session})
    else:
        say(session)
    return 0


def flags(device: str, sets: list[str]) -> dict[str, str]:
    """The flags' layer of settings; a headless run is `auto` whatever the files say.

    Raises:
        UsageError: a --set is not KEY=VALUE.
    """
    from stitch_tui.tools.errors import UsageError

    values = {"autonomy.mode": "auto"} | ({"device.kind": device} if device else {})
    for text in sets:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError("is not KEY=VALUE", where=f"--set {text}")
        values[key.strip()] = value.strip()
    return values


def chosen_reference(argument: str, setting: str) -> str:
    """The reference to work on.

    Raises:
        UsageError: neither the command line nor the settings name one, or the named file is not there.
    """
    from stitch_tui.tools.errors import UsageError

    reference = argument or setting
    if not reference:
        raise UsageError(
            "no reference", advice="name one: `stitch --auto model.py`, or `stitch init model.py` once"
        )
    file = reference.split(":")[0]
    if file.endswith(".py") and not Path(file).is_file():
        raise UsageError(
            "no such file", where=file, advice="a reference is file.py, file.py:Class or pkg.mod:Class"
        )
    return reference
