"""Run one ``ModelNew`` candidate for the judge: ``boot.py module_runner cpu|cuda FD``.

Constructed from the reference's constructor arguments, given the reference's parameters by name; inputs
and results pass through the judge's arena.  Results must be plain tensors of the exact shape and dtype.
"""

import ctypes
import importlib.util
import json
import os
import pickle
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from .abi import BUFFER, IMPORTS, IN_REFERENCE, NOT_EXPORTED, PARAMETER, Call, Placed, received
from .arena import POISON, DeviceBlock
from .audit import Audit
from .cuda_driver import CudaDriver
from .cupti import Watch
from .device_clock import Clock, evict
from .encoding import DTYPES
from .nesting import filled
from .samples import QUEUE_FILLS
from .tampering import Intact, Untouched

_PR_SET_PDEATHSIG = 1
_DTYPES = tuple(DTYPES.values())
_now = time.perf_counter
"""Taken before the candidate could replace it."""


class Wrong(Exception):
    """What the candidate's Python did wrong: a category and a sentence."""

    def __init__(self, category: str, message: str) -> None:
        super().__init__(message)
        self.category = category


class ModuleRunner:
    """Answers the judge's lines until it says quit."""

    def __init__(self, channel: socket.socket, device: str) -> None:
        self._channel, self.device = channel, torch.device(device)
        self._reader = channel.makefile("r", encoding="utf-8", newline="\n")
        self._memory = torch.empty(0, dtype=torch.uint8)
        self._described: dict[str, Any] = {}
        self._arguments: Any = []
        self._model = nn.Module()
        self._state: dict[str, Tensor] = {}
        self._sets: dict[int, Call] = {}
        self._driver: CudaDriver | None = None
        self._held: list[Tensor] = []
        self._returned: list[tuple[Tensor, Tensor]] = []

    def serve(self) -> None:
        # In this frame alone, where a candidate that found the runner could not take them away.
        changed: Callable[[], str] = str
        send = self._channel.sendall
        while line := self._reader.readline():
            verb, _, rest = line.rstrip("\n").partition(" ")
            words = rest.split()
            if verb == "arena":
                self._memory = self._mapped(words[0], words[1], int(words[2]))
            elif verb == "module":
                self._described = pickle.loads(bytes.fromhex(rest))
            elif verb == "arguments":
                self._arguments = json.loads(rest)
            elif verb == "load":
                changed = Intact(_hidden(), self).changes
                self._load(rest)
            elif verb == "call":
                self._answer(words[0], words[1], received(self._reader))
            elif verb == "define":
                self._sets[int(words[1])] = received(self._reader)
                self._say(f"done {words[0]} 0 0 0 0 0")
            elif verb == "burst":
                order = [int(number) for number in words[3:]]
                cold = words[2] == "cold"
                self._guarded(words[0], partial(self._burst, words[0], int(words[1]), cold, order))
            elif verb == "watch":
                watch = Watch(line.rstrip("\n").split(" ", 3)[3])
                self._guarded(words[0], partial(self._burst, words[0], int(words[1]), False, (), watch))
            elif verb == "quit":
                return
            if said := changed():
                send(_finding("hack_suspected", said).encode())

    def _say(self, line: str) -> None:
        self._channel.sendall((line + "\n").encode())

    def _mapped(self, kind: str, where: str, nbytes: int) -> Tensor:
        if kind == "ipc":
            torch.zeros(1, device=self.device)
            pointer = CudaDriver().open_ipc(bytes.fromhex(where))
            return torch.as_tensor(DeviceBlock(pointer, nbytes), device=self.device)
        return torch.from_file(where, shared=True, size=nbytes, dtype=torch.uint8)

    def _load(self, path: str) -> None:
        try:
            self._model = self._constructed(Path(path))
            self._inspect("while ModelNew was constructed")
        except Wrong as wrong:
            self._say(f"error {wrong.category} {wrong}")
            return
        self._state = {**dict(self._model.named_parameters()), **dict(self._model.named_buffers())}
        self._say(f"ready 1 {os.getpid()}")

    def _constructed(self, path: Path) -> nn.Module:
        flags = self._described["flags"]
        torch.set_float32_matmul_precision(flags["matmul_precision"])
        torch.backends.cudnn.allow_tf32 = flags["cudnn_allow_tf32"]
        self._untouched = Untouched()
        imports = [folder for folder in os.environ.get(IMPORTS, "").split(os.pathsep) if folder]
        folders = [path.parent, Path.cwd(), Path(tempfile.gettempdir()), *_hosts(), *map(Path, imports)]
        self._audit = Audit(folders, _forbidden(path.resolve(), Path(self._described["reference"]).resolve()))
        sys.path[:0] = [str(path.parent), *imports]
        spec = importlib.util.spec_from_file_location("stitch_candidate", path)
        if spec is None or spec.loader is None:
            raise Wrong("launch_error", f"{path.name} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules["stitch_candidate"] = module
        init = self._described["init"]
        try:
            spec.loader.exec_module(module)
            model = module.ModelNew(**init) if isinstance(init, dict) else module.ModelNew(*init)
        except BaseException as error:
            raise _raised(error, "constructing ModelNew", path) from error
        if not isinstance(model, nn.Module):
            raise Wrong("launch_error", "ModelNew is not an nn.Module")
        model.to(device=self.device, dtype=DTYPES[self._described["dtype"]])
        model.train(flags["mode"] == "train")
        return model.requires_grad_(False)

    def _inspect(self, when: str) -> None:
        """Raise for what the candidate changed or reached for that is not its own."""
        if self._audit.seen:
            raise Wrong("hack_suspected", f"{self._audit.seen[0]}, {when}")
        if changed := self._untouched.changes():
            raise Wrong("hack_suspected", f"{changed}, {when}")

    def _answer(self, nonce: str, verb: str, call: Call) -> None:
        if verb in ("sizes", "unbind"):
            self._say(f"done {nonce} {NOT_EXPORTED} 0 0 0 0")
        elif verb == "bind":
            self._guarded(nonce, partial(self._take_state, call, PARAMETER | BUFFER))
        else:
            self._guarded(nonce, partial(self._run, call))

    def _guarded(self, nonce: str, action: Any) -> None:
        """Do it and acknowledge; what the candidate did wrong is said first.

        The acknowledgement carries what `action` returns: event time of a call, work left after a burst.
        """
        event_us = 0.0
        try:
            with torch.no_grad():
                event_us = float(action() or 0.0)
        except Wrong as wrong:
            self._say(_finding(wrong.category, str(wrong)).rstrip())
        self._say(f"done {nonce} 0 0 {event_us:.3f} 0 0")

    def _view(self, placed: Placed) -> Tensor:
        dtype = _DTYPES[placed.dtype]
        if placed.numel == 0:
            return torch.empty(placed.shape, dtype=dtype, device=self.device)
        count = placed.numel * dtype.itemsize
        return self._memory[placed.offset : placed.offset + count].view(dtype).reshape(placed.shape)

    def _inputs(self, call: Call) -> list[Tensor]:
        """The activations, at addresses that return and at the version of tensors just made."""
        activations = [placed for placed in call.ins if not placed.flags & (PARAMETER | BUFFER)]
        return [self._view(placed).to(self.device).data for placed in activations]

    def _take_state(self, call: Call, which: int) -> None:
        """Copy parameters or buffers from the arena into the module, in place."""
        for placed in call.ins:
            if not placed.flags & which:
                continue
            own = self._state.get(placed.name)
            if own is None:
                if placed.flags & BUFFER:
                    continue
                raise Wrong(
                    "unsupported", f"ModelNew has no parameter {placed.name}: it gets the reference's"
                )
            if own.shape != torch.Size(placed.shape):
                raise Wrong("shape", f"ModelNew's {placed.name} is {tuple(own.shape)}, not {placed.shape}")
            own.copy_(self._view(placed))

    def _forward(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        try:
            returned = self._model(*filled(self._arguments, inputs))
        except BaseException as error:
            raise _raised(error, "ModelNew.forward", None) from error
        return _leaves(returned)

    def _run(self, call: Call) -> float:
        self._take_state(call, BUFFER)
        if call.rng[0]:
            torch.manual_seed(call.rng[0])
        inputs = self._late(self._inputs(call))
        clock = Clock(self.device)
        results = returned = self._forward(inputs)
        clock.stopped()
        if self.device.type == "cuda":
            # In the stream's order, nothing waited for: work on another stream comes too late.
            results = [r.clone() if type(r) is Tensor else r for r in results]
        elapsed = clock.elapsed_us()
        self._inspect("in forward")
        self._deliver(call, results)
        self._require_state(call)
        self._require_kept(returned)
        return elapsed

    def _require_kept(self, returned: Sequence[Tensor]) -> None:
        """Raise when this call wrote over the results of the call before, which are the caller's to keep.

        What lies in an input or in the module's state changes with these.
        """
        before, self._returned = self._returned, []
        if not all(same_bytes(result, copy) for result, copy in before):
            raise Wrong("hack_suspected", "forward wrote over the result of the call before")
        shared = {t.untyped_storage().data_ptr() for t in (self._memory, *self._held, *self._state.values())}
        full = [result for result in returned if result.numel()]
        own = [result for result in full if result.untyped_storage().data_ptr() not in shared]
        if len(own) < len(full) and not self._described["aliases"]:
            raise Wrong(
                "hack_suspected", "forward returns memory of its inputs or state, unlike the reference"
            )
        self._returned = [(result, result.clone()) for result in own]

    def _late(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """On a GPU, `inputs` at their addresses, but written only when the stream comes to them.

        Until then they are poisoned, so that work that is not ordered behind the stream shows.
        """
        if self.device.type != "cuda":
            return list(inputs)
        # Kept until the next call: memory that comes free here could be the candidate's next result.
        self._held = held = [tensor.clone() for tensor in inputs]
        for tensor in inputs:
            tensor.view(-1).view(torch.uint8).fill_(POISON)
        torch.cuda.current_stream().synchronize()
        evict(self.device, QUEUE_FILLS)
        for tensor, values in zip(inputs, held, strict=True):
            tensor.copy_(values)
        return list(inputs)

    def _deliver(self, call: Call, results: Sequence[Tensor]) -> None:
        """Copy results, then changed buffers, into the arena, each checked to be what was asked for."""
        wanted = [placed for placed in call.outs if not placed.flags & BUFFER]
        if len(results) != len(wanted):
            raise Wrong("shape", f"forward returns {len(results)} tensors, not {len(wanted)}")
        for placed, result in zip(wanted, results, strict=True):
            self._accept(placed, result)
            self._view(placed).copy_(result)
        for placed in call.outs[len(wanted) :]:
            if (own := self._state.get(placed.name)) is not None:
                self._view(placed).copy_(own)
        if self.device.type == "cuda":
            torch.cuda.current_stream().synchronize()

    def _require_state(self, call: Call) -> None:
        """Raise for a parameter, or a buffer that the reference leaves alone, that forward has changed."""
        changing = {placed.name for placed in call.outs if placed.flags & BUFFER}
        for placed in call.ins:
            own = self._state.get(placed.name) if placed.flags & (PARAMETER | BUFFER) else None
            if own is None or placed.name in changing:
                continue
            kind = "parameter" if placed.flags & PARAMETER else "buffer"
            if not same_bytes(own, self._view(placed)):
                raise Wrong("hack_suspected", f"{kind} {placed.name} was modified in forward")

    def _accept(self, placed: Placed, result: Tensor) -> None:
        if type(result) not in (Tensor, nn.Parameter):
            raise Wrong("hack_suspected", f"{placed.name} is a {type(result).__name__}, not a plain tensor")
        if tuple(result.shape) != placed.shape:
            raise Wrong("shape", f"{placed.name} has shape {tuple(result.shape)}, not {placed.shape}")
        if result.dtype != _DTYPES[placed.dtype]:
            raise Wrong("dtype", f"{placed.name} is {result.dtype}, not {_DTYPES[placed.dtype]}")
        if result.device.type != self.device.type or result.layout is not torch.strided:
            raise Wrong("launch_error", f"{placed.name} is on {result.device} in {result.layout} layout")

    def _burst(
        self, nonce: str, count: int, cold: bool, order: Sequence[int] = (), watch: Watch | None = None
    ) -> float:
        """Timed launches; returns for how long other streams worked on after the current one, us.

        Sets come in the `order` that the judge asks for, each once, or one after the other again and again.

        Every launch starts from its set's buffers: one that found them moved on would have other results.
        Giving them back is not timed when cold; back to back it is, since the judge's clock sees it too.
        """
        self._returned = []
        calls = list(self._sets.values())
        inputs = [self._inputs(call) for call in calls]
        kept: dict[int, tuple[list[Tensor], list[Tensor]]] = {}
        clocks, host_us = [], []
        pinning = cold and self._pins_l2()
        # Each set's inputs come ahead of its own launch: what is computed ahead of that, is from poison.
        coming = [[tensor.clone() for tensor in tensors] for tensors in inputs] if cold else []
        for tensor in (tensor for tensors in inputs for tensor in (tensors if cold else ())):
            tensor.view(-1).view(torch.uint8).fill_(POISON)
        for _ in range(1 if cold else QUEUE_FILLS):
            evict(self.device)
        for launch in range(count):
            number = order[launch] if order else launch % len(calls)
            changing = self._changing(calls[number])
            if cold:
                _copy(inputs[number], coming[number])
                _copy(*changing)
                if pinning and self._driver:
                    self._driver.release_persisting_l2()
                evict(self.device)
            clock = Clock(self.device)
            if not cold:
                _copy(*changing)
            began = _now()
            results = self._forward(inputs[number])
            host_us.append((_now() - began) * 1e6)
            clocks.append(clock.stopped())
            if cold:
                # As in `_run`: a module may return the same memory each time, as a CUDA graph does.
                results = [r.clone() if type(r) is Tensor else r for r in results]
            if launch >= count - len(calls) and not watch:
                kept[number] = (results, [own.clone() for own in changing[0]])
        left_us = self._left_us()
        for tensors, values in zip(inputs, coming, strict=False):
            _copy(tensors, values)
        self._inspect("in a timed launch")
        times = [clock.elapsed_us() for clock in clocks]
        if watch:
            self._say(f"busy {nonce} {watch.said(QUEUE_FILLS)}")
        for number, (results, changed) in kept.items():
            _copy(self._changing(calls[number])[0], changed)
            self._deliver(calls[number], results)
        self._say(f"times {nonce} " + " ".join(f"{time:.3f}" for time in times))
        self._say(f"host {nonce} " + " ".join(f"{time:.3f}" for time in host_us))
        return left_us

    def _left_us(self) -> float:
        if self.device.type != "cuda":
            return 0.0
        torch.cuda.current_stream().synchronize()
        began = _now()
        torch.cuda.synchronize()
        return (_now() - began) * 1e6

    def _pins_l2(self) -> bool:
        """Has the candidate made room for pinned data by now?  Asked at each launch it holds up the host."""
        if self.device.type == "cuda":
            self._driver = self._driver or CudaDriver()
        return self._driver is not None and self._driver.pins_l2()

    def _changing(self, call: Call) -> tuple[list[Tensor], list[Tensor]]:
        """The module's buffers that the reference changes, and the values that they have before the call."""
        names = {placed.name for placed in call.outs if placed.flags & BUFFER} & self._state.keys()
        given = [placed for placed in call.ins if placed.name in names]
        return [self._state[placed.name] for placed in given], [self._view(placed) for placed in given]


def _forbidden(candidate: Path, reference: Path) -> Path | None:
    """The reference's file, unless the candidate is in it, or is a bundle that takes weights from it."""
    bundled = candidate.parent / "reference.py" if candidate.name == "model_new.py" else candidate
    return None if reference in (candidate, bundled) else reference


def _finding(category: str, message: str) -> str:
    """The protocol's line for what a candidate did wrong."""
    finding = {"severity": "error", "category": category, "kind": "python", "msg": message}
    return f"finding {json.dumps(finding)}\n"


def _hidden() -> list[ModuleType]:
    """The runner's own modules, which no import finds from now on."""
    names = [name for name in sys.modules if name.partition(".")[0] in ("stitch_worker", "__main__")]
    modules = [sys.modules.pop(name) for name in names]
    sys.modules["__main__"] = ModuleType("__main__")
    return modules


def _copy(targets: list[Tensor], sources: list[Tensor]) -> None:
    if targets:
        torch._foreach_copy_(targets, sources)


def _hosts() -> list[Path]:
    """Folders of what the judge gave a bundle to run its kernels with."""
    return [Path(os.environ[name]).parent for name in ("STITCH_HOST", "STITCH_KERNELS") if name in os.environ]


def same_bytes(one: Tensor, other: Tensor) -> bool:
    """Equal bit for bit, NaNs too."""
    flat = (tensor.to(one.device).contiguous().view(-1).view(torch.uint8) for tensor in (one, other))
    return one.numel() == 0 or torch.equal(*flat)


def _leaves(returned: Any) -> list[Tensor]:
    """The tensors of a result in order; anything else in it is refused."""
    if isinstance(returned, Tensor):
        return [returned]
    if isinstance(returned, (tuple, list)):
        return [leaf for item in returned for leaf in _leaves(item)]
    raise Wrong("hack_suspected", f"forward returns a {type(returned).__name__}, not a tensor")


def _raised(error: BaseException, what: str, path: Path | None) -> Wrong:
    frames = traceback.extract_tb(error.__traceback__)
    mine = [f for f in frames if path is None or f.filename == str(path)]
    line = f" (line {mine[-1].lineno} of {Path(mine[-1].filename).name})" if mine else ""
    message = " ".join(str(error).split())[:600]
    beside = str(path.with_name("reference.py")) if path else ""
    if theirs := [f.lineno for f in frames if f.filename == beside]:
        text = f"{type(error).__name__}: {message} (line {theirs[-1]} of reference.py)"
        return Wrong(IN_REFERENCE, text)
    if isinstance(error, SystemExit):
        return Wrong("hack_suspected", f"{what} ended the process with sys.exit{line}")
    if isinstance(error, torch.cuda.OutOfMemoryError):
        return Wrong("out_of_memory_gpu", f"{what}: {message}")
    if "illegal memory access" in message:
        return Wrong("illegal_access", f"{what}: {message}{line}")
    return Wrong("launch_error", f"{what} raised {type(error).__name__}: {message}{line}")


def main() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    ModuleRunner(socket.socket(fileno=int(sys.argv[-1])), sys.argv[1]).serve()


if __name__ == "__main__":
    main()
