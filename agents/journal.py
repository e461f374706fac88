"""A session's append-only event log: ``.stitch/sessions/<id>/events.jsonl``.

An event is on disk before anyone sees it.  A torn last line (the machine stopped in the middle of a
write) is cut off when the journal is opened again.
"""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from stitch_tui.agents.events import CoderDelta, Event, IterationCommitted, SessionFinished, parse
from stitch_tui.tools.errors import EnvironmentFault

_SYNCED = (IterationCommitted, SessionFinished)


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


def read(path: Path) -> Iterator[Event]:
    """The events of a journal, in order, without a torn last line."""
    with path.open("rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield parse(line)


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
