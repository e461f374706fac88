"""Run a subprocess that can be trusted to end: own group, limits, capped output, killed whole.

Compilers, profilers and other tools go through here; a process of ours that is killed takes them along.
"""

import asyncio
import contextlib
import ctypes
import functools
import os
import shutil
import signal
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GRACE_S = (0.5, 0.5)
"""Seconds between INT and TERM, and between TERM and KILL."""
REAPING_S = 1.0
"""Longest time that killed processes of a group may take to be gone."""
_PR_SET_CHILD_SUBREAPER = 36
_TIED = (
    'unset PWD OLDPWD SHLVL; (read -r nothing <&"$0"; kill -KILL 0) </dev/null >/dev/null 2>&1 & exec "$@"'
)
"""Become a program whose group dies with us: a watcher in the group waits for the end of our pipe.

A death signal (``prctl(2)``) would reach the compiler's driver alone, and not the compiler that it started.
"""


@dataclass(frozen=True)
class Finished:
    """A process that has ended and been reaped."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    seconds: float
    timed_out: bool = False
    truncated: bool = False

    @property
    def ok(self) -> bool:
        return self.returncode == 0 and not self.timed_out


async def run(
    argv: Sequence[str],
    *,
    timeout: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    output_limit: int = 4_000_000,
) -> Finished:
    """Run `argv` in a new session to its end, or kill its whole group after `timeout` seconds.

    Output past `output_limit` bytes a stream is read and dropped (`truncated`).  Cancelling the
    caller kills the group too, and so does a death of this process, however it dies.

    Raises:
        FileNotFoundError, PermissionError: the program cannot be started.
    """
    started = time.monotonic()
    _require_program(argv[0], cwd, env)
    life = _life()
    process = await _start(
        asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", _TIED, str(life), *argv),
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=(life,),
            start_new_session=True,
        )
    )
    assert process.stdout
    assert process.stderr
    out, err = _Capped(output_limit), _Capped(output_limit)
    timed_out = False
    try:
        async with asyncio.timeout(timeout):
            await asyncio.gather(
                _feed(process, stdin), out.drain(process.stdout), err.drain(process.stderr), process.wait()
            )
    except TimeoutError:
        timed_out = True
    finally:
        await kill_group(process)
        await _reap(process.pid)
        await _rest(process, out.drain(process.stdout), err.drain(process.stderr))
    return Finished(
        argv=tuple(argv),
        returncode=process.returncode if process.returncode is not None else -1,
        stdout=out.text(),
        stderr=err.text(),
        seconds=time.monotonic() - started,
        timed_out=timed_out,
        truncated=out.dropped or err.dropped,
    )


@functools.cache
def _life() -> int:
    """The end to read of a pipe that nobody writes to; the other end is open while this process lives.

    From now on orphans below this process are its own (Linux), so that it can reap the watchers: the first
    process of a container often reaps nobody.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    ours, _ = os.pipe()
    return ours


def _require_program(name: str, cwd: Path | None, env: Mapping[str, str] | None) -> None:
    """Raise as ``exec`` would: the shell in between only says that it failed."""
    path = (os.environ if env is None else env).get("PATH", os.defpath)
    place = str((cwd or Path()) / name) if "/" in name else name
    if shutil.which(place, path=path) is None:
        found = "/" in name and Path(place).exists()
        raise (PermissionError if found else FileNotFoundError)(f"cannot be started: {name}")


async def _start(
    creation: Coroutine[Any, Any, asyncio.subprocess.Process],
) -> asyncio.subprocess.Process:
    """Wait for the process; cancelled meanwhile, wait all the same and kill its whole group.

    asyncio itself would kill the leader alone and then wait for whoever holds its pipes.
    """
    starting = asyncio.ensure_future(creation)
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await kill_group(await starting)
        raise


async def kill_group(process: asyncio.subprocess.Process) -> None:
    """End the process's group with INT, TERM, KILL and reap its leader; harmless when it has ended."""
    for sig, grace in zip((signal.SIGINT, signal.SIGTERM), GRACE_S, strict=True):
        if process.returncode is not None:
            break
        signal_group(process.pid, sig)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), grace)
    signal_group(process.pid, signal.SIGKILL)
    await process.wait()


def signal_group(leader: int, sig: signal.Signals) -> None:
    """Signal every process of the group that `leader` leads, if there is one left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, sig)


async def _reap(group: int) -> None:
    """Wait for those of a killed group that lost their parent: the watcher above all."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(REAPING_S):
            while _some_left(group):  # noqa: ASYNC110 - nothing tells of their end
                await asyncio.sleep(0.002)


def _some_left(group: int) -> bool:
    """Reap what has ended of a group, as far as it is ours; is there more?"""
    try:
        while os.waitpid(-group, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return False
    return True


async def _rest(process: asyncio.subprocess.Process, *drains: Coroutine[Any, Any, None]) -> None:
    """Read what a killed group left in the pipes, up to their ends unless somebody escaped with them."""
    try:
        await asyncio.wait_for(asyncio.gather(*drains), GRACE_S[0])
    except TimeoutError:
        process._transport.close()  # type: ignore[attr-defined]  # asyncio has no public way to close them


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    if process.stdin is None:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


class _Capped:
    """Keeps the first bytes of a stream and reads the rest into nothing."""

    def __init__(self, limit: int) -> None:
        self.limit, self.kept, self.dropped = limit, bytearray(), False

    async def drain(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(65536):
            room = self.limit - len(self.kept)
            self.kept += chunk[:room]
            self.dropped |= len(chunk) > room

    def text(self) -> str:
        return self.kept.decode("utf-8", errors="replace")
