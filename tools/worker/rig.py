"""A candidate set up to run: slots placed, weights bound, each call poisoned before and searched after."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from . import abi
from .answers import Done
from .arena import (
    Arena,
    Layout,
    Slot,
    broken_guards,
    bytes_of,
    fill_guards,
    open_arena,
    poison,
    same_bytes,
    view,
)
from .candidate_fault import CandidateFault
from .channel import Channel
from .encoding import DTYPES
from .hoarding import require_room
from .isolation import Isolation
from .kernel_cache import KernelCache
from .launch import Launch, confinement
from .leftovers import children, threads

FLAGS = {"parameter": abi.PARAMETER, "buffer": abi.BUFFER, "constant": abi.BUFFER}
_DTYPE_CODES = {dtype: code for code, dtype in enumerate(DTYPES.values())}
LATE_SECONDS, LATE_STEP_SECONDS = 0.3, 0.02
"""How long, and how often, a wrong result is looked at again."""
_DEVICE_RESERVE = 256 << 20
"""Device memory beyond the tensors that a first arena holds for workspace and bound memory."""


@dataclass(frozen=True)
class Border:
    """Names and kinds of the tensors that a candidate is called with, in the ABI's order."""

    inputs: tuple[str, ...]
    kinds: tuple[str, ...]
    """``activation``, ``parameter`` or ``buffer`` for each input."""
    outputs: tuple[str, ...]
    ints: tuple[int, ...] = ()
    floats: tuple[float, ...] = ()
    mutated: int = 0
    """How many of the last outputs are new values of buffers."""

    @property
    def activations(self) -> list[bool]:
        return [kind not in FLAGS for kind in self.kinds]


class Rig:
    """One candidate in its own process; close it after use.

    Raises:
        CandidateFault: from every method, when the candidate misbehaves.
        Unsupported: from `place`, `bind` and `run`, when it does not handle the extents.
    """

    def __init__(self, border: Border, launch: Launch, preface: Sequence[str] = ()) -> None:
        self.border, self.launch, self.preface = border, launch, preface
        self.arguments = ""
        """The line that tells a module's runner how to nest its arguments; empty for a library."""
        self.device = torch.device(launch.device)
        self.seed = 0
        """Of the caller's generator, for operators that draw from it; 0 where none does."""
        self.output = ""
        """What the candidate printed, once it is closed."""
        self.notes: list[str] = []
        self.warnings: list[dict[str, Any]] = []
        self._arena: Arena | None = None
        self._channel: Channel | None = None
        self._layout = Layout()
        self._ins: list[Slot] = []
        self._outs: list[Slot] = []
        self._extra: list[Slot] = []
        self._like: list[Tensor] = []
        self._delivered: list[tuple[Slot, Tensor]] = []
        self._threads = 0
        self._ended = False

    @property
    def protections(self) -> list[str]:
        return self._channel.protections if self._channel else []

    @property
    def started(self) -> bool:
        """Does the candidate run: could its process be started, and the candidate be loaded?"""
        return self._channel is not None

    def place(self, tensors: Sequence[Tensor], outputs: Sequence[Tensor], shift: int = 0) -> None:
        """Lay out slots for such inputs and results, and scratch memory as the candidate asks for it.

        `shift` bytes ahead of them move every address.
        """
        if self._arena:
            self._late_writes()
        self._layout = Layout()
        if shift:
            self._layout.add("nothing", shift)
        self._ins = [
            self._layout.add(f"input {n}", t.nbytes) for n, t in zip(self.border.inputs, tensors, strict=True)
        ]
        self._outs = [
            self._layout.add(f"output {n}", t.nbytes)
            for n, t in zip(self.border.outputs, outputs, strict=True)
        ]
        self._inputs_like, self._like, self._extra = list(tensors), list(outputs), []
        self._reserve(2 * self._layout.nbytes + _DEVICE_RESERVE)
        if self.arguments and self._channel:
            self._channel.tell(self.arguments)
        self._write(tensors)
        self._threads = self._threads or threads(self._channel.pid if self._channel else 0)
        sizes = self._call("sizes")
        wanted = (sizes.workspace_bytes, sizes.bound_bytes)
        if min(wanted) < 0:
            raise CandidateFault("launch_error", f"stitch_sizes asks for {min(wanted)} bytes")
        self._extra = [
            self._layout.add(name, nbytes)
            for name, nbytes in zip(("workspace", "bound memory"), wanted, strict=True)
        ]
        self._reserve(self._layout.nbytes)
        assert self._arena
        fill_guards(self._arena, self._layout)

    def bind(self, tensors: Sequence[Tensor]) -> Done:
        """Let the candidate prepare these weights; activations are poisoned, so it cannot run ahead."""
        self._write(tensors)
        assert self._arena
        for slot, activation in zip(self._ins, self.border.activations, strict=True):
            if activation:
                poison(self._arena, slot)
        for slot in (*self._outs, *self._extra):
            poison(self._arena, slot)
        return self._call("bind")

    def run(self, tensors: Sequence[Tensor]) -> tuple[list[Tensor], Done]:
        """One launch on `tensors`, at the same addresses as ever; results are copies."""
        self._write(tensors)
        assert self._arena
        for slot in (*self._outs, *self._extra[:1]):
            poison(self._arena, slot)
        done = self._call("run")
        require_room(self.device, self._end)
        self._search(tensors)
        delivered = self.results()
        self._delivered = list(zip(self._outs, delivered, strict=True))
        self._left_running()
        return delivered, done

    def changes_late(self, results: Sequence[Tensor]) -> bool:
        """Do the outputs still change, some time after the call was acknowledged?"""
        end = time.monotonic() + LATE_SECONDS
        while time.monotonic() < end:
            self._synchronise()
            if not all(map(same_bytes, self.results(), results)):
                return True
            time.sleep(LATE_STEP_SECONDS)
        return False

    def _left_running(self) -> None:
        """Raise for processes and threads that outlive the call that started them."""
        assert self._channel
        if self.launch.module and "STITCH_KERNELS" not in self.launch.env:
            for command in children(self._channel.pid):
                raise CandidateFault(
                    "hack_suspected", f"a process goes on after the call has returned: {command[:200]}"
                )
        if self.launch.load and not self.launch.module and self.device.type == "cpu":
            count = threads(self._channel.pid)
            if count > self._threads:
                raise CandidateFault(
                    "hack_suspected", f"{count - self._threads} threads go on after the call has returned"
                )

    def _late_writes(self) -> None:
        """Raise when results that were delivered have changed since, before anything else is written."""
        assert self._arena
        delivered, self._delivered = self._delivered, []
        for slot, result in delivered:
            if not same_bytes(view(self._arena, slot, result.dtype, tuple(result.shape)), result):
                raise CandidateFault(
                    "hack_suspected", f"{slot.name} was written after the call had been acknowledged"
                )

    def results(self) -> list[Tensor]:
        """Copies of the output slots."""
        assert self._arena
        return [
            view(self._arena, slot, like.dtype, tuple(like.shape)).clone()
            for slot, like in zip(self._outs, self._like, strict=True)
        ]

    def close(self) -> None:
        self._end()
        if self._arena:
            self._arena.close()

    def _end(self) -> None:
        """End the candidate's process; keeps what it printed."""
        if self._channel and not self._ended:
            self.output, self._ended = self._channel.close(), True

    def _reserve(self, nbytes: int) -> None:
        """An arena of at least `nbytes`, announced to the runner, which is started with the first."""
        if self._arena and self._arena.nbytes >= nbytes:
            return
        if self._arena and self.device.type != "cuda":
            raise CandidateFault(
                "out_of_memory_host", f"{nbytes >> 30} GiB of tensors and scratch are asked for"
            )
        old, self._arena = self._arena, open_arena(nbytes, self.device)
        if self._arena.note:
            self.notes.append(self._arena.note)
        if self._channel is None:
            self._channel = Channel(
                self.launch.argv,
                arena=self._arena.announce(),
                load=self.launch.load,
                preface=self.preface,
                env=self.launch.environment,
                descriptors=self._arena.descriptors,
                isolation=self._isolation(self._arena) if self.launch.isolate else None,
                cache=KernelCache(Path(self.launch.cache)) if self.launch.cache else None,
                deadline_s=self.launch.deadline_s,
            )
        else:
            self._channel.tell(self._arena.announce())
        if old:
            old.close()

    def _isolation(self, arena: Arena) -> Isolation | None:
        wanted, working = confinement(self.launch, self.device, arena)
        if working != wanted:
            self.notes.append("the runner is confined less: CUDA does not start under full confinement here")
        return working

    def _write(self, tensors: Sequence[Tensor]) -> None:
        assert self._arena
        self._late_writes()
        for slot, tensor in zip(self._ins, tensors, strict=True):
            view(self._arena, slot, tensor.dtype, tuple(tensor.shape)).copy_(tensor)

    def description(self) -> abi.Call:
        """The call as the runner is told it."""
        call = abi.Call(ints=list(self.border.ints), floats=list(self.border.floats), rng=(self.seed, 0))
        for name, kind, slot, like in zip(
            self.border.inputs, self.border.kinds, self._ins, self._inputs_like, strict=True
        ):
            call.ins.append(placed(name, FLAGS.get(kind, 0), slot, like))
        results = len(self._outs) - self.border.mutated
        for index, (name, slot, like) in enumerate(
            zip(self.border.outputs, self._outs, self._like, strict=True)
        ):
            call.outs.append(placed(name, abi.BUFFER if index >= results else 0, slot, like))
        if self._extra:
            call.workspace, call.bound = ((slot.offset, slot.nbytes) for slot in self._extra)
        return call

    def _call(self, verb: str) -> Done:
        assert self._channel
        self._synchronise()
        done = self._channel.call(verb, self.description())
        self.warnings += done.findings
        return done

    def _synchronise(self) -> None:
        """The judge's own writes are done before another process reads."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _search(self, tensors: Sequence[Tensor]) -> None:
        """Raise for what a call must not have touched: guard zones and inputs."""
        assert self._arena
        if broken := broken_guards(self._arena, self._layout):
            fill_guards(self._arena, self._layout)
            raise CandidateFault("out_of_bounds", f"memory outside the tensors was written: {broken[0]}")
        for slot, tensor in zip(self._ins, tensors, strict=True):
            kept = self._arena.memory[slot.offset : slot.end]
            if tensor.numel() and not torch.equal(kept, bytes_of(tensor).to(kept.device)):
                raise CandidateFault("hack_suspected", f"{slot.name} was modified: inputs are read-only")


def placed(name: str, flags: int, slot: Slot, like: Tensor) -> abi.Placed:
    shape = tuple(like.shape)
    strides = tuple(torch.empty(shape, device="meta").stride())
    token = re.sub(r"\s", "_", name) or "_"
    return abi.Placed(token, _DTYPE_CODES[like.dtype], flags, slot.offset, slot.nbytes, shape, strides)
