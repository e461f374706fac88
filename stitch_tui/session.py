"""A viewer's end of sessions: events in, commands out, and what there is.  No Textual, torch or git."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter

from stitch_tui.agents import events, journal, presence
from stitch_tui.agents.commands import Attach, Command, Reply
from stitch_tui.agents.events import Event
from stitch_tui.agents.presence import Engine
from stitch_tui.agents.state import Session
from stitch_tui.tools.errors import StitchError, UsageError

Line = Annotated[Event | Reply, Field(discriminator="type")]
_ADAPTER: TypeAdapter[Line] = TypeAdapter(Line, config=ConfigDict(defer_build=True))
_LINE_BYTES = 1 << 28
FROM_NOW_ON = 1 << 60
"""Attach since this event: none of the journal, all that comes."""


_END_BYTES = 1 << 16
"""How much of a journal's end is read to know how the session stands."""
_ITERATION = re.compile(rb'"iteration":(\d+)')


@dataclass(frozen=True)
class Known:
    """A session that has a journal here, as its first and last lines tell it."""

    name: str
    reference: str
    device: str
    target: str
    """The reference as the user named it."""
    iterations: int
    ended: events.SessionFinished | None
    """None: it runs, or its engine was killed."""


class Gone(StitchError):
    """The engine ended without a last event: it was killed."""

    def __init__(self) -> None:
        super().__init__("the engine was killed", advice="go on with: stitch --auto --resume")


class Connection:
    """One connection to an engine."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def post(self, command: Command) -> None:
        """Send a command; its reply comes among the `lines`."""
        self._writer.write(command.model_dump_json().encode() + b"\n")

    async def ask(self, command: Command) -> Reply:
        """Send a command and wait for the reply; events that come first are passed over."""
        self.post(command)
        async for line in self.lines():
            if isinstance(line, Reply):
                return line
        raise Gone

    async def lines(self) -> AsyncIterator[Line]:
        """Everything the engine sends, up to its end."""
        try:
            while (line := await self._reader.readline()).endswith(b"\n"):
                yield _ADAPTER.validate_json(line)
        except ConnectionError:
            return

    async def stream(self, since: int = 0) -> AsyncIterator[Event]:
        """The session's events after `since`, up to ``session.finished``.

        Raises:
            Gone: the engine was killed.
        """
        self.post(Attach(since=since))
        async for line in self.lines():
            if isinstance(line, Reply):
                continue
            yield line
            if isinstance(line, events.SessionFinished):
                return
        raise Gone


def found(project: Path) -> Engine:
    """The engine that runs in the project.

    Raises:
        UsageError: none does.
    """
    engine = presence.running(project)
    if engine is None:
        raise UsageError("no engine runs in this project", advice="start one: stitch --auto --detach")
    return engine


@asynccontextmanager
async def connected(engine: Engine) -> AsyncIterator[Connection]:
    """A connection that lasts as long as the context.

    Raises:
        UsageError: the engine does not listen.
    """
    sock = presence.connect(engine)
    reader, writer = await asyncio.open_unix_connection(sock=sock, limit=_LINE_BYTES)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()


def journal_of(project: Path, session: str) -> Path:
    """The journal of a session, or of the latest for an empty name.

    Raises:
        UsageError: there is none.
    """
    known = journal.sessions(project)
    name = session or next(iter(known), "")
    if name not in known:
        raise UsageError(
            f"no journal of session {session}" if session else "no session has a journal here",
            where=str(project / ".stitch" / "sessions"),
            advice=f"there is {', '.join(known[:5])}"
            if known
            else "a clone has `stitch log` and `stitch show`",
        )
    return journal.path_of(project, name)


def state_of(project: Path, session: str) -> Session:
    """A session's state, from its journal."""
    return events.fold(journal.read(journal.path_of(project, session)))


def source_path(project: Path, session: Session, subtask: str) -> Path:
    """A subtask's file in the session's work folder, which the engine watches; made where it is missing.

    Raises:
        UsageError: no code was written for it yet.
    """
    path = project / ".stitch" / "work" / session.id / session.subtask(subtask).file
    if not path.is_file():
        tried = [session.best_of(session.subtask(subtask)), *reversed(session.attempts_of(subtask))]
        source = next((i.candidate.source for i in tried if i and i.candidate), "")
        if not source and session.subtask(subtask).is_host:
            source = _stitched_host(path.with_name("model_new.py"))
        if not source:
            raise UsageError("no code yet", where=subtask)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return path


def _stitched_host(program: Path) -> str:
    """The host side of the program that the engine has stitched last.

    Raises:
        UsageError: it has not stitched any.
    """
    from stitch_tui.tools.bundle import host_part

    try:
        return host_part(program.read_text(encoding="utf-8"))
    except OSError as fault:
        raise UsageError(
            "no stitched program yet",
            where=str(program),
            advice="the host program comes once every kernel is done",
        ) from fault


def plan_path(project: Path, session: Session) -> Path:
    """The ``plan.toml`` in the session's work folder, which the engine keeps and watches.

    Raises:
        UsageError: there is no plan yet.
    """
    path = project / ".stitch" / "work" / session.id / "plan.toml"
    if not path.is_file():
        raise UsageError("no plan yet", where=str(path), advice="it is written once there is one")
    return path


def known(project: Path, most: int) -> Iterator[Known]:
    """The latest sessions, the one written last first; each costs two reads, however long it is."""
    for name in islice(journal.sessions(project), most):
        try:
            with journal.path_of(project, name).open("rb") as file:
                first = file.readline()
                file.seek(max(file.seek(0, 2) - _END_BYTES, 0))
                end = file.read()
        except OSError:  # gone meanwhile, or another user's
            continue
        begun, last = _event(first), _event(end[:-1].rpartition(b"\n")[2])
        if isinstance(begun, events.SessionStarted):
            numbers = _ITERATION.findall(end)
            yield Known(
                name=name,
                reference=begun.reference,
                device=begun.device,
                target=begun.target,
                iterations=int(numbers[-1]) if numbers else 0,
                ended=last if isinstance(last, events.SessionFinished) else None,
            )


def _event(line: bytes) -> Event | None:
    """The event on a line, if it is a whole one of this version."""
    try:
        return events.parse(line)
    except ValueError:
        return None
