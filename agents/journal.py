"""A session's append-only event log: ``.stitch/sessions/<id>/events.jsonl``.

An event is on disk before anyone sees it.  A torn last line (the machine stopped in the middle of a
write) is cut off when the journal is opened again.
"""

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stitch_tui.agents.events import (
    VERSION,
    CoderDelta,
    CommitIntended,
    Event,
    IterationCommitted,
    SessionFinished,
    SessionStarted,
    parse,
)
from stitch_tui.tools.errors import EnvironmentFault, UsageError

MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""Version -> the change that makes a line of that version one of the next."""

_SYNCED = (SessionStarted, CommitIntended, IterationCommitted, SessionFinished)
"""On the disk itself before git is touched, and after: a power cut leaves no commit that nobody intended."""


class Journal:
    """Numbers, stamps and appends events.

    Args:
        path: the file; its folder is made when missing.
        session: id that every event carries.

    Raises:
        EnvironmentFault: the file cannot be opened or written.
    """

    def __init__(self, path: Path, session: str) -> None:
        self.path, self.session = path, session
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            whole, self.seq = _complete_prefix(path)
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
            os.ftruncate(self._descriptor, whole)
            os.lseek(self._descriptor, whole, os.SEEK_SET)
        except OSError as error:
            raise _unwritable(path, error) from error
        self._size = whole

    def append(self, event: Event) -> Event:
        """Write `event`; returns it as written, with seq, time and session.

        A failed write leaves the journal as it was.  Streamed text is stamped but not written.
        """
        stamp = {"time": datetime.now(UTC), "session": self.session}
        if isinstance(event, CoderDelta):
            return event.model_copy(update=stamp)
        written = event.model_copy(update={**stamp, "seq": self.seq + 1})
        line = written.model_dump_json().encode() + b"\n"
        try:
            self._write_whole(line)
            if isinstance(event, _SYNCED):
                os.fsync(self._descriptor)
        except OSError as error:
            os.ftruncate(self._descriptor, self._size)
            os.lseek(self._descriptor, self._size, os.SEEK_SET)
            raise _unwritable(self.path, error) from error
        self.seq += 1
        self._size += len(line)
        return written

    def close(self) -> None:
        os.close(self._descriptor)

    def _write_whole(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]


def path_of(project: Path, session: str) -> Path:
    """Where the journal of a session lies."""
    return project / ".stitch" / "sessions" / session / "events.jsonl"


def sessions(project: Path) -> list[str]:
    """Sessions that have a journal here, the one written last first."""
    written: dict[str, int] = {}
    for path in path_of(project, "x").parent.parent.glob("*/events.jsonl"):
        with suppress(OSError):  # gone meanwhile
            found = path.stat()
            if stat.S_ISREG(found.st_mode) and found.st_size:
                written[path.parent.name] = found.st_mtime_ns
    return sorted(written, key=lambda name: written[name], reverse=True)


def read(path: Path) -> Iterator[Event]:
    """The events of a journal, in order, brought to this version; without a torn last line.

    Raises:
        UsageError: a line is of a newer version, is no event, or is not the next one; says which.
        EnvironmentFault: the file cannot be read.
    """
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.endswith(b"\n"):
                    yield _numbered(_event(line, f"{path}:{number}"), number, f"{path}:{number}")
    except OSError as error:
        raise EnvironmentFault(
            "the session's journal cannot be read", where=str(path), why=error.strerror or str(error)
        ) from error


def _numbered(event: Event, number: int, where: str) -> Event:
    """The event, which must be the one of that number: lines may be lost, doubled or moved."""
    if event.seq != number:
        raise _damaged(where, f"event {event.seq} stands where {number} should")
    return event


def _event(line: bytes, where: str) -> Event:
    try:
        return parse(line)
    except ValidationError as fault:
        return _migrated(line, where, fault)


def _migrated(line: bytes, where: str, fault: ValidationError) -> Event:
    """An event of an older version, changed step by step into one of this version."""
    try:
        data = json.loads(line)
        version = data["v"]
        if version > VERSION:
            raise UsageError(
                f"the journal was written by a newer stitch (version {version}, this one reads {VERSION})",
                where=where,
                advice="update stitch",
            )
        for old in range(version, VERSION):
            data = MIGRATIONS[old](data)
        return parse(json.dumps(data))
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _damaged(where, _first_line(fault)) from fault


def _damaged(where: str, why: str) -> UsageError:
    return UsageError("the journal is damaged", where=where, why=why, advice="start a new session")


def _first_line(fault: ValidationError) -> str:
    first = fault.errors()[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


def _complete_prefix(path: Path) -> tuple[int, int]:
    """Length of the part that ends with a newline, and the number of lines in it."""
    if not path.exists():
        return 0, 0
    size = count = 0
    with path.open("rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                size, count = size + len(line), count + 1
    return size, count


def _unwritable(path: Path, error: OSError) -> EnvironmentFault:
    return EnvironmentFault(
        "the session's journal cannot be written",
        where=str(path),
        why=error.strerror or str(error),
        advice="free space or make the folder writable, then run again",
    )
