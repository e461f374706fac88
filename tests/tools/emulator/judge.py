"""A small judge: the other end of the runner protocol, for the emulator's tests."""

import asyncio
import contextlib
import json
import socket
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from stitch_tui.tools.emulator import Emulator
from stitch_tui.tools.process import kill_group
from stitch_tui.tools.verdict import Build, Finding

DTYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
)
SLOT = 4096
ANSWER_S = 60.0
POISON = 0xCD


class Ended(Exception):
    """The runner closed its end without an answer; carries the raw findings it had sent."""

    def __init__(self, raw: list[dict[str, Any]]) -> None:
        super().__init__(f"runner ended: {raw}")
        self.raw = raw


@dataclass
class Answer:
    rc: int
    cuda_error: int
    event_us: float
    workspace: int
    bound: int
    inputs: list[torch.Tensor]
    outputs: list[torch.Tensor]
    raw: list[dict[str, Any]]


@dataclass
class Call:
    """What a call is given.  Outputs are `(shape, dtype)` or a strided tensor to write into."""

    inputs: Sequence[torch.Tensor] = ()
    outputs: Sequence[torch.Tensor] = ()
    ints: Sequence[int] = ()
    floats: Sequence[float] = ()
    workspace: int = 0
    bound: int = 0
    names: Sequence[str] = field(default_factory=tuple)


class Runner:
    """One runner process and its arena."""

    def __init__(self, process: asyncio.subprocess.Process, ours: socket.socket, arena: Path) -> None:
        self.process, self.arena, self.nonce = process, arena, 0
        self._socket = ours
        self._received = b""

    async def call(self, verb: str, call: Call, *, timeout: float = ANSWER_S) -> Answer:
        """Raises `Ended`, or TimeoutError when no answer came in time."""
        self.nonce += 1
        lines, slots, size = [f"call n{self.nonce} {verb}"], [], 0
        for side, tensors in (("in", call.inputs), ("out", call.outputs)):
            for k, tensor in enumerate(tensors):
                data = _bytes(tensor)
                name = call.names[k] if side == "in" and call.names else str(k)
                lines.append(_slot_line(side, tensor, size, len(data), name))
                slots.append((size, data, side))
                size += (len(data) // SLOT + 1) * SLOT
        self._write_arena(slots, size)
        await self._send(f"arena file {self.arena} {max(size, SLOT)}")
        lines += [f"int {v}" for v in call.ints] + [f"float {v!r}" for v in call.floats]
        lines += ["rng 7 11", f"workspace 0 {call.workspace}", f"bound 0 {call.bound}", "go"]
        await self._send("\n".join(lines))
        async with asyncio.timeout(timeout):
            done, raw = await self._answer()
        return self._read_back(call, done, raw)

    async def hello(self) -> list[str]:
        await self._send("hello 1")
        async with asyncio.timeout(ANSWER_S):
            return (await self._line() or "").split()

    async def quit(self) -> int:
        await self._send("quit")
        async with asyncio.timeout(ANSWER_S):
            return await self.process.wait()

    def hang_up(self) -> None:
        self._socket.close()

    def _write_arena(self, slots: list[tuple[int, bytes, str]], size: int) -> None:
        with self.arena.open("wb") as file:
            file.truncate(max(size, SLOT))
            for offset, data, side in slots:
                file.seek(offset)
                file.write(data if side == "in" else bytes([POISON]) * len(data))

    def _read_back(self, call: Call, done: list[str], raw: list[dict[str, Any]]) -> Answer:
        assert done[0] == f"n{self.nonce}"
        memory, at, back = self.arena.read_bytes(), 0, []
        for tensor in (*call.inputs, *call.outputs):
            size = len(_bytes(tensor))
            back.append(_tensor(memory[at : at + size], tensor))
            at += (size // SLOT + 1) * SLOT
        cut = len(call.inputs)
        rc, error, workspace, bound = int(done[1]), int(done[2]), int(done[4]), int(done[5])
        return Answer(rc, error, float(done[3]), workspace, bound, back[:cut], back[cut:], raw)

    async def _answer(self) -> tuple[list[str], list[dict[str, Any]]]:
        raw: list[dict[str, Any]] = []
        while (line := await self._line()) is not None:
            kind, _, rest = line.partition(" ")
            if kind == "done":
                return rest.split(), raw
            assert kind == "finding"
            raw.append(json.loads(rest))
        raise Ended(raw)

    async def _send(self, text: str) -> None:
        await asyncio.get_running_loop().sock_sendall(self._socket, text.encode() + b"\n")

    async def _line(self) -> str | None:
        while b"\n" not in self._received:
            chunk = await asyncio.get_running_loop().sock_recv(self._socket, 65536)
            if not chunk:
                return None
            self._received += chunk
        line, _, self._received = self._received.partition(b"\n")
        return line.decode()


@contextlib.asynccontextmanager
async def running(emulator: Emulator, build: Build, **env: Any) -> AsyncIterator[Runner]:
    """A started runner that has said hello; killed afterwards if it still lives."""
    assert build.ok, build.diagnostics
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with tempfile.TemporaryDirectory() as folder:
        process = await asyncio.create_subprocess_exec(
            *emulator.runner_argv(build),
            str(theirs.fileno()),
            env=emulator.runner_env(**env),
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        theirs.close()
        runner = Runner(process, ours, Path(folder) / "arena file")
        try:
            assert (await runner.hello())[:2] == ["ready", "1"]
            yield runner
        finally:
            ours.close()
            await kill_group(process)


async def findings_of(
    emulator: Emulator, build: Build, call: Call, **env: Any
) -> tuple[Answer | None, list[Finding]]:
    """One `run` in a fresh runner: the answer, or None when it died, and the located findings."""
    async with running(emulator, build, **env) as runner:
        try:
            answer = await runner.call("run", call)
        except Ended as ended:
            return None, await emulator.locate(build, ended.raw)
        return answer, await emulator.locate(build, answer.raw)


def _bytes(tensor: torch.Tensor) -> bytes:
    """The strided extent of a tensor."""
    extent = _extent(tensor)
    flat = torch.as_strided(tensor, (extent,), (1,))
    return bytes(flat.contiguous().view(torch.uint8).numpy().tobytes())


def _extent(tensor: torch.Tensor) -> int:
    if not tensor.numel():
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))


def _tensor(data: bytes, like: torch.Tensor) -> torch.Tensor:
    flat = torch.frombuffer(bytearray(data or b"\0" * 8), dtype=like.dtype)
    return torch.as_strided(flat, like.shape, like.stride())


def _slot_line(side: str, tensor: torch.Tensor, offset: int, size: int, name: str) -> str:
    numbers = [DTYPES.index(tensor.dtype), 0, offset, size, tensor.dim(), *tensor.shape, *tensor.stride()]
    return " ".join((side, *map(str, numbers), name))
