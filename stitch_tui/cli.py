"""The command line: parses, dispatches, and is the one place that reports errors.

``stitch --auto [REF]`` stands before any subcommand; it is read as the hidden command ``run``.
"""

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from stitch_tui import __version__, garbage
from stitch_tui.commands import (
    ctl,
    docs,
    edit,
    engine,
    history,
    profile,
    project,
    prompts,
    replay,
    run,
    selftest,
    serve,
    settings,
    verify,
)
from stitch_tui.commands.output import one_line
from stitch_tui.tools.errors import ExitCode, StitchError
from stitch_tui.tools.redaction import redacted

app = typer.Typer(
    name="stitch",
    help="Turn a PyTorch program into a verified, profiled, end-to-end CUDA program.",
    epilog="Example: stitch --auto model.py",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
# typer carries its own copy of click's exceptions since 0.26; the public name leads to the base of both.
_ParseError = typer.BadParameter.__mro__[2]
_UNWRITABLE = {errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG}
"""What printing raises; every other file names itself in its error."""

AUTO_HELP = "Run headless: stitch --auto [REF] [OPTIONS]; see stitch --auto --help."
PLAIN_HELP = "The running session as lines, steered by typed ones: for screen readers and dumb terminals."
START = """\
No engine runs in this directory.

  stitch doctor              what this machine has and lacks
  stitch --auto model.py     plan, code, verify and commit, without asking
                             (--detach: in the background; then `stitch` shows it)
  stitch log                 what was done; then: stitch show N, stitch apply

`stitch --help` lists every command."""


def main() -> None:
    """The ``stitch`` command."""
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # replaced only in tests
    sys.exit(_delivered(invoke(sys.argv[1:])))


def _open_streams() -> None:
    """Put a null device where a standard stream is closed: else the next file would take its place."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            os.set_inheritable(descriptor, True)
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r", closefd=False))


def _delivered(code: int) -> int:
    """The exit code, once what was printed has left: a reader may go away, a full disk is an error."""
    error = _refusal(sys.stdout)
    _refusal(sys.stderr)  # else the interpreter ends with a code of its own
    return code if error is None or isinstance(error, BrokenPipeError) else code or _undelivered(error)


def _refusal(stream: TextIO) -> OSError | None:
    """Why what was printed cannot leave; then nothing is printed there any more."""
    try:
        stream.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return error
    return None


def _undelivered(error: OSError) -> int:
    if isinstance(error, BrokenPipeError):
        return ExitCode.GOAL_NOT_MET
    _complain(f"the output cannot be written: {error.strerror}")
    return ExitCode.ENVIRONMENT


def invoke(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; whatever goes wrong is one line on stderr."""
    words, debug = _without_debug(arguments)
    try:
        return int(_command().main(args=_run_first(words), prog_name="stitch", standalone_mode=False) or 0)
    except Exception as error:
        return _report(error, debug)
    except KeyboardInterrupt:
        _complain("interrupted")
        return ExitCode.INTERRUPT


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    auto: Annotated[bool, typer.Option("--auto", help=AUTO_HELP)] = False,
    plain: Annotated[bool, typer.Option("--plain", help=PLAIN_HELP)] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Add the traceback to an error.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> int:
    if version:
        typer.echo(f"stitch {__version__}")
        return ExitCode.GOAL_MET
    if context.invoked_subcommand is None:
        if plain or os.environ.get("TERM") == "dumb":
            return engine.plain()
        if _has_screen():
            return _opened()
        typer.echo(START)
        return ExitCode.USAGE
    return ExitCode.GOAL_MET


app.command(hidden=True, epilog="Example: stitch --auto model.py:Net --device emulator --json")(run.run)
app.command(hidden=True, epilog="Example: stitch --auto --detach model.py")(run.engine)
app.command(epilog="Example: stitch status --json")(engine.status)
app.command(epilog="Example: stitch attach --json")(engine.attach)
app.command(epilog="Example: stitch stop")(engine.stop)
app.command(epilog="Example: stitch view --json")(engine.view)
app.command(epilog="Example: stitch edit s01")(edit.edit)
app.command(epilog="Example: stitch pause")(ctl.pause)
app.command(epilog="Example: stitch resume")(ctl.resume)
app.add_typer(ctl.ctl, name="ctl")
app.command(epilog="Example: stitch init model.py:Net --inputs model.py:make_inputs")(project.init)
app.command(epilog="Example: stitch doctor --json")(project.doctor)
app.command(epilog="Example: stitch selftest --device emulator")(selftest.selftest)
app.command(epilog="Example: stitch verify stitched/model_new.py --reference model.py:Net")(verify.verify)
app.command(epilog="Example: stitch profile model.py:Net --json")(profile.profile)
app.command(epilog="Example: stitch recheck best --json")(verify.recheck)
app.command(epilog="Example: stitch log --json")(history.log)
app.command(epilog="Example: stitch show 7")(history.show)
app.command(epilog="Example: stitch diff 3 7")(history.diff)
app.command(epilog="Example: stitch best --json")(history.best)
app.command(epilog="Example: stitch restore 4")(history.restore)
app.command(epilog="Example: stitch apply best --commit")(history.apply)
app.command(epilog="Example: stitch export out/ 7")(history.export)
app.add_typer(history.sessions, name="sessions")
app.command(epilog="Example: stitch replay 20261130-1000-gated_mlp --device emulator")(replay.replay)
app.command(epilog="Example: stitch serve --port 8080")(serve.serve)
app.command(epilog="Example: stitch themes --json")(settings.themes)
app.command(epilog="Example: stitch trust")(settings.trust)
app.add_typer(settings.config, name="config")
app.add_typer(prompts.prompts, name="prompts")
app.add_typer(docs.docs, name="docs")


def _has_screen() -> bool:
    """Is there a terminal, or a browser that Textual draws for?"""
    return (sys.stdin.isatty() and sys.stdout.isatty()) or "TEXTUAL_DRIVER" in os.environ


def _opened() -> int:
    """Show the session of this directory's engine, or the start screen, until the viewer leaves."""
    garbage.rest()
    from stitch_tui import app as screens
    from stitch_tui.agents.presence import running
    from stitch_tui.config import load

    settings = load(Path.cwd(), refuse=False).settings
    engine = running(Path.cwd())
    if engine is not None and engine.session:
        return screens.watch(engine, Path.cwd(), settings)
    return screens.start(Path.cwd(), settings)


def _command() -> Any:
    return typer.main.get_command(app)


def _without_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The words without ``--debug``, which may stand anywhere before ``--``, and whether it was there."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [word for word in arguments[:end] if word != "--debug"]
    return [*kept, *arguments[end:]], len(kept) < end


def _run_first(words: list[str]) -> list[str]:
    """``--auto`` among the leading options, as the hidden command ``run``."""
    if not words or not words[0].startswith("-") or "--auto" not in words:
        return words
    at = words.index("--auto")
    return ["run", *words[:at], *words[at + 1 :]]


def _report(error: Exception, debug: bool) -> int:
    """Say what went wrong on one line; the exit code."""
    if isinstance(error, OSError) and error.filename is None and error.errno in _UNWRITABLE:
        _refusal(sys.stdout)
        return _undelivered(error)
    if debug:
        typer.echo(redacted("".join(traceback.format_exception(error))), err=True, nl=False)
    if isinstance(error, StitchError):
        _complain(str(error))
        return error.exit_code
    if isinstance(error, typer.Abort):
        _complain("interrupted")
        return ExitCode.INTERRUPT
    if isinstance(error, _ParseError):
        _complain(f"{error.format_message()} (`{_asked(error)} --help`)")  # type: ignore[attr-defined]
        return ExitCode.USAGE
    _complain(f"a fault in stitch itself: {type(error).__name__}: {error} ({_log(error)})")
    return ExitCode.GOAL_NOT_MET


def _asked(error: Exception) -> str:
    """The command whose words were wrong, as it is typed."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "stitch"
    return "stitch --auto" if path == "stitch run" else path


def _log(error: Exception) -> str:
    """Write the traceback down and say where."""
    from datetime import UTC, datetime

    from stitch_tui.files import write_atomically
    from stitch_tui.tools.paths import state_dir

    name = f"crash-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}.txt"
    try:
        path = state_dir("log") / name
        write_atomically(
            path, redacted(f"stitch {__version__}\n{''.join(traceback.format_exception(error))}")
        )
    except StitchError as failure:
        return f"no log: {failure}"
    return f"the traceback is in {path}; please report it"


def _complain(text: str) -> None:
    with suppress(OSError):  # nobody hears it; the exit code still tells
        typer.echo(f"stitch: {one_line(redacted(text))}", err=True)
