"""Which engine runs in a project: at most one, found by anyone in the project folder.

``.stitch/engine.lock`` is held by the engine as long as it lives, so it cannot go stale.
``.stitch/engine.json`` says who that is and where its socket lies, in the user's runtime folder.
"""

import hashlib
import os
import shutil
import socket
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from stitch_tui.tools.atomic_write import replace_file
from stitch_tui.tools.errors import EnvironmentFault, UsageError
from stitch_tui.tools.locks import acquire, is_held
from stitch_tui.tools.paths import runtime_dir

PATIENCE_S = 0.5
"""Longest time that `running` may be in the way of an engine that starts."""


class Engine(BaseModel):
    """A running engine."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pid: int
    session: str = ""
    """Empty while it starts."""
    socket: Path


class Presence:
    """This process as the project's engine."""

    def __init__(self, project: Path) -> None:
        self._file = _note(project)
        name = hashlib.sha256(os.fsencode(project.resolve())).hexdigest()[:16]
        self.socket = runtime_dir("engines") / f"{name}.sock"
        self.announce("")

    def announce(self, session: str) -> None:
        """Say which session this engine runs."""
        engine = Engine(pid=os.getpid(), session=session, socket=self.socket)
        replace_file(self._file, engine.model_dump_json().encode())

    def bind(self) -> socket.socket:
        """The engine's socket, for this user alone; what a dead engine left there is removed.

        Raises:
            EnvironmentFault: it cannot be made.
        """
        try:
            self._remove_socket()
            bound = _with_short_path(self.socket, socket.socket.bind)
            self.socket.chmod(0o600)
        except OSError as error:
            raise EnvironmentFault(
                "the engine's socket cannot be made",
                where=str(self.socket),
                why=error.strerror or str(error),
                advice="set XDG_RUNTIME_DIR to a folder of yours",
            ) from error
        return bound

    def leave(self) -> None:
        """Remove what others find this engine by; the lock ends with its holder."""
        with suppress(OSError):
            self._remove_socket()
        self._file.unlink(missing_ok=True)

    def _remove_socket(self) -> None:
        """The lock is held: a socket of this name belongs to nobody who lives."""
        with suppress(FileNotFoundError):
            if stat.S_ISSOCK(self.socket.lstat().st_mode):
                self.socket.unlink()


@asynccontextmanager
async def claimed(project: Path) -> AsyncIterator[Presence]:
    """Be the project's engine while the context lasts.

    Raises:
        UsageError: another engine runs there; names it.
        EnvironmentFault: `.stitch/` or the runtime folder cannot be used.
    """
    from stitch_tui.tools.history.folders import state_folder  # not for viewers: they need no git

    new = not (project / ".stitch").exists()
    folder = state_folder(project)
    path = folder / "engine.lock"
    try:
        lock = await acquire([path], timeout=PATIENCE_S)
    except TimeoutError:
        raise _occupied(project) from None
    except OSError as error:
        raise EnvironmentFault(
            "the engine's lock cannot be taken", where=str(path), why=error.strerror or str(error)
        ) from error
    try:
        presence = Presence(project)
        try:
            yield presence
        finally:
            presence.leave()
    finally:
        if new and {entry.name for entry in folder.iterdir()} <= {".gitignore", path.name}:
            shutil.rmtree(folder, ignore_errors=True)  # the run could not begin: nothing of it stays
        os.close(lock)


def running(project: Path) -> Engine | None:
    """The engine that runs in the project, if one does; looking writes nothing.

    Raises:
        EnvironmentFault: it cannot be told.
    """
    lock = _note(project).with_suffix(".lock")
    try:
        return _read(project) if is_held(lock) else None
    except OSError as error:
        raise EnvironmentFault(
            "it cannot be told whether an engine runs here", where=str(lock), why=error.strerror or str(error)
        ) from error


def connect(engine: Engine) -> socket.socket:
    """A connection to a running engine.

    Raises:
        UsageError: it does not listen yet, or not any more.
    """
    try:
        return _with_short_path(engine.socket, socket.socket.connect)
    except OSError as error:
        raise UsageError(
            "the engine does not answer",
            where=f"pid {engine.pid}",
            why="" if engine.session else "it is still opening the reference",
            advice="try again in a moment",
        ) from error


def _with_short_path(path: Path, use: Callable[[socket.socket, str], None]) -> socket.socket:
    """A socket, bound or connected through its folder's descriptor: an address has 107 bytes at most."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        use(made, f"/proc/self/fd/{folder}/{path.name}")
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    finally:
        os.close(folder)
    return made


def _read(project: Path) -> Engine | None:
    with suppress(OSError, ValidationError):
        return Engine.model_validate_json(_note(project).read_bytes())
    return None


def _note(project: Path) -> Path:
    return project / ".stitch" / "engine.json"


def _occupied(project: Path) -> UsageError:
    engine = _read(project)
    who = f"pid {engine.pid}, session {engine.session or 'about to begin'}" if engine else ""
    return UsageError(
        "an engine runs in this project already",
        where=str(project),
        why=who,
        advice="watch it with `stitch attach`, or end it with `stitch stop`",
    )
