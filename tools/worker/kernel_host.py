"""Call kernels that run in processes of their own: the host's side of the runner protocol, on a CPU.

A bundle's ``model_new.py`` loads this file by path (``STITCH_HOST``) when ``STITCH_KERNELS`` names a
process for each kernel, and calls `backend`; the protocol is written down in docs/architecture.md.
Standard library and torch only.
"""

import itertools
import json
import mmap
import os
import secrets
import socket
import subprocess
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

DTYPES = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
    *(torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool),
)
"""In the order of ``enum stitch_dtype``."""
ALIGNMENT = 256


class HostError(RuntimeError):
    """The runner process ended, or spoke something other than the protocol."""


class Argument(NamedTuple):
    """One tensor of a call: its name (one token), its ``stitch_flags``, and the CPU tensor."""

    name: str
    flags: int
    tensor: torch.Tensor


class Answer(NamedTuple):
    """What the runner said of one call; `code` -1: the candidate does not export the verb."""

    code: int
    cuda_error: int
    event_us: float
    workspace_bytes: int
    bound_bytes: int
    findings: list[dict[str, Any]]


class Arena:
    """A file that this process and a runner both map; grows by being replaced."""

    def __init__(self, count: int) -> None:
        handle, name = tempfile.mkstemp(prefix="stitch-arena-")
        self.path, self.count = Path(name), count
        weakref.finalize(self, self.path.unlink, missing_ok=True)
        with os.fdopen(handle, "r+b") as file:
            file.truncate(count)
            self.memory = mmap.mmap(file.fileno(), count)

    def place(self, tensor: torch.Tensor, offset: int) -> torch.Tensor:
        """The arena's bytes at `offset` as a tensor laid out like `tensor`."""
        span = extent(tensor) // tensor.element_size()
        flat = torch.frombuffer(self.memory, dtype=tensor.dtype, count=span, offset=offset)
        return flat.as_strided(tensor.shape, tensor.stride())


class Runner:
    """A process that holds one candidate."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [*argv, str(theirs.fileno())],
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self.name = Path(argv[0]).name
        self.lines = ours.makefile("rw", encoding="utf-8", newline="\n")
        weakref.finalize(self, end, self.process, ours, self.lines)
        ours.close()
        self.arena: Arena | None = None
        self.send("hello 1")
        if self.receive().split()[:2] != ["ready", "1"]:
            raise HostError(f"{self.name} does not speak version 1 of the runner protocol")

    def send(self, *lines: str) -> None:
        try:
            self.lines.write("".join(f"{line}\n" for line in lines))
            self.lines.flush()
        except OSError as error:
            raise HostError(f"{self.name} ended: {self.epitaph()}") from error

    def receive(self) -> str:
        try:
            line = self.lines.readline()
        except OSError:
            line = ""
        if not line:
            raise HostError(f"{self.name} ended: {self.epitaph()}")
        return line.rstrip("\n")

    def epitaph(self) -> str:
        """How the process ended; it has closed its socket, so it is about to."""
        try:
            code = self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "it closed its socket"
        return f"killed by signal {-code}" if code < 0 else f"exit status {code}"

    def require_arena(self, count: int) -> Arena:
        """An arena of at least `count` bytes that the runner knows."""
        if self.arena is None or self.arena.count < count:
            self.arena = Arena(count)
            self.send(f"arena file {self.arena.path} {count}")
        return self.arena

    def call(
        self,
        verb: str,
        ins: Sequence[Argument],
        outs: Sequence[Argument],
        ints: Sequence[int] = (),
        floats: Sequence[float] = (),
        rng: tuple[int, int] = (0, 0),
        workspace_bytes: int = 0,
        bound_bytes: int = 0,
    ) -> Answer:
        """Copy the tensors in, call ``stitch_<verb>``, and copy the results out when it returned 0.

        Raises:
            HostError: the process ended or broke the protocol.
        """
        sizes = [*(extent(a.tensor) for a in (*ins, *outs)), workspace_bytes, bound_bytes]
        ends = list(itertools.accumulate(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes))
        offsets = [0, *ends[:-1]]
        arena = self.require_arena(max(ends[-1], ALIGNMENT))
        for argument, offset in zip(ins, offsets, strict=False):
            if argument.tensor.numel():
                arena.place(argument.tensor, offset).copy_(argument.tensor)
        nonce = secrets.token_hex(8)
        kinds = ["in"] * len(ins) + ["out"] * len(outs)
        self.send(
            f"call {nonce} {verb}",
            *(slot(*row) for row in zip(kinds, (*ins, *outs), offsets, sizes, strict=False)),
            *(f"int {value}" for value in ints),
            *(f"float {float(value)!r}" for value in floats),
            f"rng {rng[0]} {rng[1]}",
            f"workspace {offsets[-2]} {workspace_bytes}",
            f"bound {offsets[-1]} {bound_bytes}",
            "go",
        )
        answer = self.answer(nonce)
        if verb == "run" and answer.code == 0:
            for argument, offset in zip(outs, offsets[len(ins) :], strict=False):
                if argument.tensor.numel():
                    argument.tensor.copy_(arena.place(argument.tensor, offset))
        return answer

    def answer(self, nonce: str) -> Answer:
        findings = []
        for line in iter(self.receive, ""):
            word, _, rest = line.partition(" ")
            if word == "finding":
                findings.append(json.loads(rest))
            elif word == "done" and rest.split()[0] == nonce:
                code, error, event_us, workspace, bound = rest.split()[1:6]
                return Answer(int(code), int(error), float(event_us), int(workspace), int(bound), findings)
            else:
                break
        raise HostError(f"{self.name} broke the runner protocol")


def extent(tensor: torch.Tensor) -> int:
    """Bytes between a tensor's first element and the end of its last."""
    if tensor.numel() == 0:
        return 0
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    return int(last + 1) * tensor.element_size()


def slot(kind: str, argument: Argument, offset: int, count: int) -> str:
    """The line that tells a runner where a tensor lies."""
    tensor = argument.tensor
    numbers = [DTYPES.index(tensor.dtype), argument.flags, offset, count, tensor.dim()]
    return " ".join(map(str, [kind, *numbers, *tensor.shape, *tensor.stride(), argument.name]))


def end(process: subprocess.Popen[bytes], *closing: Any) -> None:
    """Hang up, which ends a runner, and make sure that it has ended."""
    for thing in closing:
        try:
            thing.close()
        except OSError:
            continue
    try:
        process.wait(timeout=2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Backend:
    """A kernel of a bundle in a runner: what ``model_new.py`` calls instead of a CUDA library."""

    def __init__(self, kernel: Any, runner: Runner) -> None:
        self.kernel, self.runner = kernel, runner

    def __call__(
        self,
        verb: str,
        values: Sequence[torch.Tensor],
        stream: int,
        rng: tuple[int, int],
        workspace: torch.Tensor | None,
        bound: torch.Tensor | None,
    ) -> tuple[int, int, int]:
        """Return code, workspace bytes, bound bytes; errors that the emulator finds raise."""
        arguments = list(self.arguments(values))
        count = len(self.kernel.inputs)
        answer = self.runner.call(
            verb,
            arguments[:count],
            arguments[count:],
            self.kernel.ints,
            self.kernel.floats,
            rng,
            0 if workspace is None else workspace.numel(),
            0 if bound is None else bound.numel(),
        )
        for finding in answer.findings:
            if finding.get("severity") == "error":
                raise HostError(f"{self.kernel.file}: {json.dumps(finding)}")
        return answer.code, answer.workspace_bytes, answer.bound_bytes

    def arguments(self, values: Sequence[torch.Tensor]) -> Iterator[Argument]:
        specs = (*self.kernel.inputs, *self.kernel.outputs)
        for index, (spec, value) in enumerate(zip(specs, values, strict=True)):
            yield Argument(f"{index}_{spec.name.replace(' ', '_')}", spec.flags, value.detach())


def open(argv: Sequence[str], env: Mapping[str, str]) -> Runner:
    """Start a runner: `argv` gets the descriptor of its socket as the last argument, `env` is all it has."""
    return Runner(argv, env)


def backend(kernel: Any, argv: Sequence[str], env: Mapping[str, str]) -> Backend:
    """A runner for one kernel of a bundle."""
    return Backend(kernel, open(argv, env))
