"""The engine's end of a judge: start it, call it, and name the cause when it dies."""

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, Self

from stitch_tui.tools.errors import DeviceLost, EnvironmentFault, ReferenceFault, StitchError, UsageError
from stitch_tui.tools.judge_end import ended_because, error_of, frame, last_line
from stitch_tui.tools.judge_start import started
from stitch_tui.tools.memory import available_bytes, descendants, session_members
from stitch_tui.tools.process import kill_group, signal_group
from stitch_tui.tools.scrub import reference_environment

Json = dict[str, Any]
OnEvent = Callable[[str, Json], None]

MEMORY_SHARE = 0.8
"""Share of the machine's memory that a reference may hold, by default."""

_LOG_BYTES = 64 * 1024
_LINE_BYTES = 1 << 28
_WATCH_S = 0.2
_STACK_S = 2.0
_FAREWELL_S = 1.0


class Judge:
    """One judge process; an async context manager.

    A judge that has died, or was ended because a call took too long, was cancelled or lost the GPU, stays
    dead: every later call raises the same error.  Start another one.

    Args:
        python: the user's interpreter.
        project: working directory and first place for imports.
        environment: variables that the user declared, added to the scrubbed environment.
        memory_limit: bytes that the judge and its children may hold together.
        start_seconds: longest time for the interpreter to start and import torch.
    """

    def __init__(
        self,
        python: str,
        project: Path,
        *,
        environment: Mapping[str, str] | None = None,
        memory_limit: int | None = None,
        start_seconds: float = 120.0,
    ) -> None:
        self.python, self.project = python, project.resolve()
        self.environment = reference_environment(environment)
        self.memory_limit = memory_limit or int(available_bytes() * MEMORY_SHARE)
        self.start_seconds = start_seconds
        self.info: Json = {}
        """Versions under the user's interpreter: python, torch, cuda, pid."""
        self._log = bytearray()
        self._logged = asyncio.Event()
        self._lock = asyncio.Lock()
        self._count = 0
        self._over_memory = 0
        self._stage = ""
        self._dead: StitchError | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:  # nobody calls __aexit__ then
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def log(self) -> str:
        """The end of what the user's code printed."""
        return self._log.decode("utf-8", errors="replace")

    @property
    def alive(self) -> bool:
        """Can it be called?"""
        return self._process is not None and self._dead is None

    async def start(self) -> None:
        """Start the process and wait until torch is imported there.

        Raises:
            EnvironmentFault: no such interpreter, too old, or torch is missing or too old.
        """
        ours, theirs = socket.socketpair()
        try:
            self._process = await started(self.python, self.project, self.environment, theirs.fileno())
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=_LINE_BYTES)
        self._tasks = [asyncio.create_task(self._drain()), asyncio.create_task(self._watch())]
        try:
            async with asyncio.timeout(self.start_seconds):
                hello = await self._receive()
        except TimeoutError:
            await self._end(EnvironmentFault("importing torch took too long", where=self.python))
        except ReferenceFault as fault:
            why = last_line(self.log) or fault.what
            await self._end(
                EnvironmentFault("the interpreter cannot run stitch's worker", where=self.python, why=why)
            )
        else:
            if hello["event"] != "ready":
                await self._end(error_of(hello["data"]))
            self.info = hello["data"]

    async def call(
        self, method: str, params: Json | None = None, *, timeout: float, on_event: OnEvent | None = None
    ) -> Any:
        """Call a method and return its result; one call at a time.

        Args:
            timeout: seconds; a ``stage`` event with ``limit_s`` starts that limit anew.
            on_event: receives progress, ``(event, data)``.

        Raises:
            ReferenceFault: the reference is at fault: it raised, hung, crashed, exited or is too large.
            DeviceLost: the judge's context on the GPU is gone, and the judge with it.
            StitchError: of the kind that the judge names.
        """
        async with self._lock:
            if self._dead is not None:
                raise self._dead
            if self._process is None:
                raise RuntimeError("the judge has not been started")
            self._count += 1
            self._stage = method
            request = {"id": self._count, "method": method, "params": params or {}}
            limit = [timeout]
            try:
                return await self._answer(request, limit, on_event)
            except TimeoutError:
                where = await self._stack()
                await self._end(
                    ReferenceFault(
                        f"{self._stage} took longer than {limit[0]:g} s",
                        where=where,
                        advice="raise [reference] load_seconds or forward_seconds if it is only slow",
                    )
                )
            except asyncio.CancelledError:
                self._dead = UsageError(f"{method} was cancelled")
                self._kill(descendants(self._process.pid))
                raise

    async def close(self) -> None:
        """End the process with everything that it started; harmless when it has ended."""
        if self._process is None:
            return
        self._dead = self._dead or UsageError("the judge has been closed")
        leader = self._process.pid
        if self._writer is not None:
            self._writer.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _FAREWELL_S)
        await self._kill_all()
        self._kill(set(session_members(leader)))
        self._process._transport.close()  # type: ignore[attr-defined]  # an escaped process may hold the pipe
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._writer is not None:
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()

    async def _answer(self, request: Json, limit: list[float], on_event: OnEvent | None) -> Any:
        loop = asyncio.get_running_loop()
        assert self._writer
        async with asyncio.timeout(limit[0]) as clock:
            with contextlib.suppress(ConnectionError):
                self._writer.write(json.dumps(request).encode() + b"\n")
                await self._writer.drain()
            while "event" in (message := await self._receive()):
                data = message["data"]
                self._stage = data.get("stage", self._stage)
                if "limit_s" in data:
                    limit[0] = data["limit_s"]
                    clock.reschedule(loop.time() + limit[0])
                if on_event is not None:
                    on_event(message["event"], data)
        if "error" in message:
            error = error_of(message["error"])
            if isinstance(error, DeviceLost):
                await self._end(error)
            raise error
        return message["result"]

    async def _receive(self) -> Json:
        """One message; when there will be none, the process is ended and the cause raised."""
        try:
            line = await self._reader.readline()
        except (ConnectionError, ValueError):
            line = b""
        if not line.endswith(b"\n"):
            await self._end(await self._cause())
        if (message := message_of(line)) is None:
            await self._end(ReferenceFault("the reference wrote into the judge's connection"))
        return message

    async def _cause(self) -> StitchError:
        """Why the connection ended."""
        assert self._process
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), 2.0)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._tasks[0]), 0.5)
        return ended_because(
            self._process.returncode,
            self.log,
            self.project,
            during=self._stage,
            held=self._over_memory,
            memory_limit=self.memory_limit,
        )

    async def _end(self, error: StitchError) -> NoReturn:
        self._dead = error
        await self._kill_all()
        raise error

    async def _kill_all(self) -> None:
        """End the process and whatever descends from it, a candidate's processes too."""
        assert self._process
        kin = descendants(self._process.pid)
        await kill_group(self._process)
        self._kill(descendants(*kin) - {self._process.pid})

    def _kill(self, pids: set[int]) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    async def _stack(self) -> str:
        """``file:line`` at which the user's code is right now."""
        assert self._process
        self._log.clear()
        signal_group(self._process.pid, signal.SIGUSR1)
        where, deadline = "", asyncio.get_running_loop().time() + _STACK_S
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                while not (where := frame(self.log, self.project)):
                    self._logged.clear()
                    await self._logged.wait()
        return where

    async def _drain(self) -> None:
        """Read what the user's code prints, and keep the end of it."""
        assert self._process
        assert self._process.stdout
        while chunk := await self._process.stdout.read(1 << 16):
            self._log += chunk
            del self._log[:-_LOG_BYTES]
            self._logged.set()

    async def _watch(self) -> None:
        """Kill the whole session when it holds too much memory."""
        assert self._process
        while self._process.returncode is None:
            held = sum(session_members(self._process.pid).values())
            if held > self.memory_limit:
                self._over_memory = held
                signal_group(self._process.pid, signal.SIGKILL)
                return
            await asyncio.sleep(_WATCH_S)


def message_of(line: bytes) -> Json | None:
    """What a judge says in a line; None for what no judge writes."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    known = isinstance(message, dict) and ("event" in message or "result" in message or "error" in message)
    return message if known else None
