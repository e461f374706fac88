"""An engine that outlives the terminal: its own session, no input, output into a capped log.

The starter hands the request to ``stitch engine`` on standard input and reads one line from its
standard output: which session runs, or why none does.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from stitch_tui.agents import events
from stitch_tui.agents.engine import Parts, Request, run
from stitch_tui.agents.events import Event
from stitch_tui.agents.journal import path_of
from stitch_tui.agents.settings import Settings
from stitch_tui.tools.errors import ExitCode, StitchError
from stitch_tui.tools.own_process import STITCH

COMMAND = (*STITCH, "engine")
LOG_BYTES = 1_000_000
"""The engine's log starts over when it is longer."""


class NotStarted(StitchError):
    """The detached engine said why it could not begin."""

    def __init__(self, report: dict[str, Any]) -> None:
        parts = {name: report.get(name, "") for name in ("where", "why", "advice")}
        super().__init__(report.get("what", "the engine ended while it started"), **parts)
        self.exit_code = ExitCode(report.get("exit_code", ExitCode.GOAL_NOT_MET))


def start(request: Request, replays: str = "") -> str:
    """Start an engine that goes on without this process; the session's name, once it has begun.

    Args:
        replays: a recorded session of the project, or a journal, whose answers stand in for models.

    Raises:
        StitchError: what kept it from beginning.
    """
    with TemporaryFile() as complaints:
        engine = subprocess.Popen(
            COMMAND,
            cwd=request.project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            start_new_session=True,
        )
        assert engine.stdin
        assert engine.stdout
        try:
            with suppress(BrokenPipeError), engine.stdin as stream:
                stream.write(_written(request, replays))
            report = _report(engine.stdout) or {"why": _ending(engine, complaints)}
        except BaseException:
            engine.send_signal(signal.SIGTERM)
            engine.wait()
            raise
    if "session" not in report:
        raise NotStarted(report)
    return str(report["session"])


def _report(lines: IO[bytes]) -> dict[str, Any]:
    """What the engine says of its beginning, among what else is printed there; empty: nothing."""
    for line in lines:
        with suppress(ValueError):
            said = json.loads(line)
            if isinstance(said, dict) and said.keys() & {"session", "what"}:
                return said
    return {}


def _ending(engine: subprocess.Popen[bytes], complaints: IO[bytes]) -> str:
    """Why an engine ended that said nothing: its last line on standard error, else how it ended."""
    code = engine.wait()
    complaints.seek(0)
    lines = complaints.read().decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return last or (f"signal {-code}" if code < 0 else f"exit code {code}")


def main() -> int:
    """Be the engine that `start` wants: the request comes on standard input."""
    request, replays = _read(sys.stdin.buffer.read())
    _redirect(os.devnull, 0)
    begun = _Begun(request.project)
    try:
        return int(asyncio.run(run(request, begun, _parts(request.project, replays))))
    except StitchError as error:
        begun.refuse(error)
        return int(error.exit_code)
    except Exception as fault:
        begun.refuse(StitchError("a fault in stitch itself", why=f"{type(fault).__name__}: {fault}"))
        raise


def _parts(project: Path, replays: str) -> Parts | None:
    """The parts of a run whose models' answers were recorded; None: those of any other."""
    if not replays:
        return None
    # it imports the client library, for which whoever merely starts engines does not wait
    from stitch_tui.agents.replay import recording, replaying

    return Parts(cast=replaying(recording(project, replays)))


class _Begun:
    """Listens to the run: tells the starter when it has begun, then keeps the log short."""

    def __init__(self, project: Path) -> None:
        self._project, self._told = project, False

    def __call__(self, event: Event) -> None:
        if not self._told and isinstance(event, events.SessionStarted | events.SessionResumed):
            self._tell({"session": event.session})
            log = path_of(self._project, event.session).with_name("engine.log")
            for descriptor in (1, 2):
                _redirect(str(log), descriptor, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        elif self._told and os.fstat(2).st_size > LOG_BYTES:
            os.ftruncate(2, 0)

    def refuse(self, error: StitchError) -> None:
        """Tell the starter why there is no run; a run that had begun said so in its journal."""
        if not self._told:
            told = {"what": error.what, "where": error.where, "why": error.why, "advice": error.advice}
            self._tell(told | {"exit_code": int(error.exit_code)})

    def _tell(self, report: dict[str, Any]) -> None:
        self._told = True
        with suppress(BrokenPipeError):  # nobody waits any more
            os.write(1, json.dumps(report).encode() + b"\n")


def _redirect(path: str, descriptor: int, flags: int = os.O_RDWR) -> None:
    opened = os.open(path, flags, 0o600)
    os.dup2(opened, descriptor)
    os.close(opened)


def _written(request: Request, replays: str) -> bytes:
    settings = request.settings.model_dump(mode="json")
    return json.dumps(
        {
            "project": str(request.project),
            "settings": settings,
            "reference": request.reference,
            "resume": request.resume,
            "replays": replays,
        }
    ).encode()


def _read(data: bytes) -> tuple[Request, str]:
    """The request, and what it replays."""
    fields = json.loads(data)
    request = Request(
        project=Path(fields["project"]),
        settings=Settings.model_validate(fields["settings"]),
        reference=fields["reference"],
        resume=fields["resume"],
    )
    return request, fields["replays"]
