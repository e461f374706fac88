"""The other end of the docs worker: starts it when it is first needed, asks it, ends it."""

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, runtime_checkable

from stitch_tui.tools.errors import EnvironmentFault, StitchError, UsageError
from stitch_tui.tools.paths import cache_dir
from stitch_tui.tools.process import kill_group
from stitch_tui.tools.scrub import reference_environment

Json = dict[str, Any]
OnEvent = Callable[[str, Json], None]
COMMAND = (sys.executable, "-P", "-m", "stitch_tui.tools.docs.worker")
START_S = 60.0
SEARCH_S = 60.0
BUILD_S = 3600.0
_KEPT = ("CUTLASS_PATH", "NVCC_CCBIN")
"""Variables that finding headers depends on, beside those that any worker gets; no key is among them."""
_LINE_BYTES = 1 << 26
_FAREWELL_S = 1.0
_LOG_BYTES = 8192


@dataclass(frozen=True)
class Passage:
    """One piece of documentation that was found."""

    library: str
    version: str
    name: str
    title: str
    text: str
    file: str
    line: int
    anchor: str
    licence: str
    source: str
    score: float

    @property
    def place(self) -> str:
        """``file:line``, with the anchor of an HTML page."""
        return f"{self.file}:{self.line}" + (f"#{self.anchor}" if self.anchor else "")


@runtime_checkable
class Embedding(Protocol):
    """A model of vectors that is asked for the worker: where requests go to and with what key, it knows."""

    @property
    def name(self) -> str:
        """The model: vectors of two names cannot be compared."""
        ...

    async def vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """One for each text.

        Raises:
            StitchError: it cannot be asked.
        """
        ...

    async def close(self) -> None: ...


class NoIndex(EnvironmentFault):
    """Nothing is indexed yet."""


def is_indexed() -> bool:
    """Is there an index on this machine at all?  Asks no worker; in a home that cannot hold one is none."""
    try:
        return (cache_dir("docs") / "index").is_dir()
    except EnvironmentFault:
        return False


class DocsWorker:
    """An async context manager; the process starts with the first call and stays warm.

    A worker that died or took too long is replaced at the next call.

    Args:
        embedding: what makes vectors, as a second opinion; closed with the worker.  ``offline``: the model
            that lies in a package, asked by the worker itself.
    """

    def __init__(self, embedding: Embedding | Literal["offline"] | None = None) -> None:
        self._embedding = embedding
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._count = 0
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the process, and what makes vectors; harmless when there is none."""
        await self._end()
        if isinstance(self._embedding, Embedding):
            await self._embedding.close()

    async def search(
        self,
        query: str,
        *,
        limit: int = 5,
        library: str = "",
        version: str = "",
        on_event: OnEvent | None = None,
    ) -> list[Passage]:
        """The best passages, best first; the event ``warning`` says what was done without.

        Raises:
            NoIndex: nothing is indexed yet.
            EnvironmentFault: the index is damaged, or the worker cannot run.
        """
        asked = {"query": query, "limit": limit, "library": library, "version": version}
        found = await self.call("search", asked, timeout=SEARCH_S, on_event=on_event)
        return [Passage(**passage) for passage in found]

    async def at(self, place: str) -> Passage | None:
        """The passage that begins at a `Passage.place`; None when the index has none there.

        Raises:
            NoIndex: nothing is indexed yet.
            EnvironmentFault: the index is damaged, or the worker cannot run.
        """
        found = await self.call("at", {"place": place}, timeout=SEARCH_S)
        return Passage(**found) if found else None

    async def call(
        self, method: str, params: Json | None = None, *, timeout: float, on_event: OnEvent | None = None
    ) -> Any:
        """Call a method of the worker; one call at a time, and `timeout` seconds without a word end it.

        Raises:
            StitchError: as the worker says.
            EnvironmentFault: the worker cannot be started, ended or took too long.
        """
        async with self._lock:
            try:
                if self._process is None:
                    await self._start()
                self._count += 1
                return await self._asked(method, params or {}, timeout, on_event)
            except TimeoutError:
                await self._end()
                raise EnvironmentFault(
                    f"the docs worker took longer than {timeout:g} s", where=method
                ) from None
            except (ConnectionError, asyncio.IncompleteReadError) as error:
                log = self._last_words()
                await self._end()
                raise EnvironmentFault("the docs worker ended", where=method, why=log) from error
            except StitchError:
                raise
            except BaseException:  # cancelled, or refused by who asks for vectors: an answer is outstanding
                await asyncio.shield(self._end())
                raise

    async def _end(self) -> None:
        process, self._process = self._process, None
        if self._writer is not None:
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()
            self._writer = None
        if process is None:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _FAREWELL_S)
        await kill_group(process)
        os.close(self._log)

    async def _start(self) -> None:
        cache_dir("docs")  # a folder that cannot be made is named here, and not by a worker that ended
        ours, theirs = socket.socketpair()
        self._log = os.memfd_create("docs-worker")
        try:
            self._process = await asyncio.create_subprocess_exec(
                *COMMAND,
                str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=self._log,
                pass_fds=(theirs.fileno(),),
                env=reference_environment({name: os.environ[name] for name in _KEPT if name in os.environ}),
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            os.close(self._log)
            raise
        finally:
            theirs.close()
        self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=_LINE_BYTES)
        async with asyncio.timeout(START_S):
            await self._received()

    async def _asked(self, method: str, params: Json, timeout: float, on_event: OnEvent | None) -> Any:
        request = {"id": self._count, "method": method, "params": params, "embedding": self._embedding_kind}
        await self._send(request)
        while True:
            async with asyncio.timeout(timeout):
                message = await self._received()
            if message.get("event") == "embed":
                assert isinstance(self._embedding, Embedding)
                await self._send(await answered(self._embedding, message["data"]["texts"]))
            elif "event" in message:
                if on_event is not None:
                    on_event(message["event"], message["data"])
            elif "error" in message:
                raise _error_of(message["error"])
            else:
                return message["result"]

    @property
    def _embedding_kind(self) -> tuple[str, str]:
        if isinstance(self._embedding, Embedding):
            return "asked", self._embedding.name
        return self._embedding or "", ""

    async def _send(self, message: Json) -> None:
        assert self._writer
        self._writer.write(json.dumps(message).encode() + b"\n")
        await self._writer.drain()

    async def _received(self) -> Json:
        line = await self._reader.readuntil(b"\n")
        message: Json = json.loads(line)
        return message

    def _last_words(self) -> str:
        size = os.fstat(self._log).st_size
        text = os.pread(self._log, _LOG_BYTES, max(size - _LOG_BYTES, 0)).decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1][:300] if lines else ""


async def answered(embedding: Embedding, texts: Sequence[str]) -> Json:
    """What the worker is told that asks for vectors: they, or why there are none."""
    try:
        return {"vectors": await embedding.vectors(texts)}
    except StitchError as fault:
        return {"error": str(fault)}


def _error_of(error: Json) -> StitchError:
    kinds: dict[str, type[StitchError]] = {"Missing": NoIndex, "UsageError": UsageError}
    kind = kinds.get(error["kind"], EnvironmentFault)
    return kind(error["what"], where=error["where"], why=error["why"], advice=error["advice"])
