"""Run one ``ModelNew`` candidate for the judge: ``boot.py module_runner cpu|cuda FD``.

Constructed from the reference's constructor arguments, given the reference's parameters by name; inputs
and results pass through the judge's arena.  Results must be plain tensors of the exact shape and dtype.
"""

import ctypes
import json
import os
import pickle
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .abi import BUFFER, NOT_EXPORTED, PARAMETER, POISON, Call, received
from .arena import bytes_of
from .cuda_driver import CudaDriver
from .cupti import Watch
from .device_clock import Clock, current_stream, evict, evictor, work_left
from .module_calls import ModuleCalls, require_own
from .module_faults import Wrong, finding, told_at_once
from .module_loading import Candidate, hidden
from .samples import QUEUE_FILLS
from .tampering import intact

_PR_SET_PDEATHSIG = 1


class ModuleRunner(ModuleCalls):
    """Answers the judge's lines until it says quit."""

    def __init__(self, channel: socket.socket, device: str) -> None:
        super().__init__(torch.device(device))
        self._channel = channel
        self._reader = channel.makefile("r", encoding="utf-8", newline="\n")
        self._described: dict[str, Any] = {}
        self._sets: dict[int, Call] = {}
        self._driver: CudaDriver | None = None

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
                self._may_alias = self._described["aliases"]
            elif verb == "arguments":
                self._arguments = json.loads(rest)
            elif verb == "load":
                changed = self._changed = intact(hidden(), self)
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
                send(finding("hack_suspected", said).encode())

    def _say(self, line: str) -> None:
        self._channel.sendall((line + "\n").encode())

    def _load(self, path: str) -> None:
        changed = self._changed
        tell, is_loaded = told_at_once(self._channel.sendall)
        try:
            candidate = Candidate(Path(path), self._described, self.device, tell)
            require_own(changed)
            candidate.inspect("while ModelNew was constructed")
        except Wrong as wrong:
            self._say(f"error {wrong.category} {wrong}")
            return
        is_loaded()
        self._takes(candidate)
        self._say(f"ready 1 {os.getpid()}")

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
            self._say(finding(wrong.category, str(wrong)).rstrip())
        self._say(f"done {nonce} 0 0 {event_us:.3f} 0 0")

    def _burst(
        self, nonce: str, count: int, cold: bool, order: Sequence[int] = (), watch: Watch | None = None
    ) -> float:
        """Timed launches; returns for how long other streams worked on after the events' own, us.

        Sets come in the `order` that the judge asks for, each once, or one after the other again and again.

        Every launch starts from its set's buffers: one that found them moved on would have other results.
        Giving them back is not timed when cold; back to back it is, since the judge's clock sees it too.
        """
        self._returned = []
        changed, now = self._changed, time.perf_counter
        calls = list(self._sets.values())
        inputs = [self._inputs(call) for call in calls]
        kept: dict[int, tuple[list[Tensor], list[Tensor]]] = {}
        clocks, host_us = [Clock(self.device) for _ in range(count)], list[float]()
        # What a launch is timed with, found before the candidate could replace it.
        marks = [(clock.start, clock.stop) for clock in clocks]
        stream, left_us = current_stream(self.device), work_left(self.device)
        own_stream = stream()
        forward, clone, evict_l2 = self._forward, Tensor.clone, evictor(self.device)
        pinning = cold and self._pins_l2()
        # Each set's inputs come ahead of its own launch: what is computed ahead of that, is from poison.
        coming = [[tensor.clone() for tensor in tensors] for tensors in inputs] if cold else []
        for tensor in (tensor for tensors in inputs for tensor in (tensors if cold else ())):
            bytes_of(tensor).fill_(POISON)
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
                evict_l2()
            start, stop = marks[launch]
            start()
            if not cold:
                _copy(*changing)
            began = now()
            results = forward(inputs[number])
            host_us.append((now() - began) * 1e6)
            stop()
            if stream() != own_stream:  # events on its own would see nothing of the next launches
                raise Wrong("hack_suspected", "forward leaves another stream current")
            if cold:
                # As in `_run`: a module may return the same memory each time, as a CUDA graph does.
                results = [clone(r) if type(r) is Tensor else r for r in results]
            if launch >= count - len(calls) and not watch:
                kept[number] = (results, [own.clone() for own in changing[0]])
        require_own(changed)
        elsewhere_us = left_us()
        for tensors, values in zip(inputs, coming, strict=False):
            _copy(tensors, values)
        self._inspect("in a timed launch")
        times = [clock.elapsed_us() for clock in clocks]
        if watch:
            self._say(f"busy {nonce} {watch.said(QUEUE_FILLS)}")
        for number, (results, buffers) in kept.items():
            _copy(self._changing(calls[number])[0], buffers)
            self._deliver(calls[number], results)
        self._say(f"times {nonce} " + " ".join(f"{time:.3f}" for time in times))
        self._say(f"host {nonce} " + " ".join(f"{time:.3f}" for time in host_us))
        return elsewhere_us

    def _pins_l2(self) -> bool:
        """Has the candidate made room for pinned data by now?  Asked at each launch it holds up the host."""
        if self.device.type == "cuda":
            self._driver = self._driver or CudaDriver()
        return self._driver is not None and self._driver.pins_l2()


def _copy(targets: list[Tensor], sources: list[Tensor]) -> None:
    if targets:
        torch._foreach_copy_(targets, sources)


def main() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    ModuleRunner(socket.socket(fileno=int(sys.argv[-1])), sys.argv[1]).serve()


if __name__ == "__main__":
    main()
