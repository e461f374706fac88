"""Run one ``.so`` candidate for the judge: ``boot.py runner host|cuda FD``.  No torch.

The judge says where tensors lie and which function to call; this process knows no seed, no expected
value and no name of a trial.  ``host`` runs a library of plain C on a shared file; ``cuda`` works on
an IPC allocation, or on its own device copy of a shared file where IPC is refused.
"""

import ctypes
import mmap
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence

from .abi import NOT_EXPORTED, SYMBOLS, Call, c_call, received
from .cuda_driver import CudaDriver, CudaDriverError
from .cupti import Watch
from .late_inputs import LateInputs, LateSets
from .samples import FILLS_AHEAD, QUEUE_FILLS

_PR_SET_PDEATHSIG = 1
_FLUSH_FACTOR = 2
"""Bytes written between cold launches, in sizes of the L2 cache."""


class _HostMemory:
    """A shared file, mapped; calls see its addresses."""

    def __init__(self, path: str, nbytes: int) -> None:
        descriptor = os.open(path, os.O_RDWR)
        self.map = mmap.mmap(descriptor, nbytes)
        os.close(descriptor)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.map))

    def reserve(self, call: Call) -> None:
        pass

    def before(self, call: Call) -> None:
        pass

    def after(self, call: Call) -> None:
        pass


class _IpcMemory(_HostMemory):
    """The judge's device allocation."""

    def __init__(self, driver: CudaDriver, handle: str) -> None:
        self.base = driver.open_ipc(bytes.fromhex(handle))


class _MirroredMemory(_HostMemory):
    """A device copy of the part of a shared file that calls use; slots are copied around each call."""

    def __init__(self, driver: CudaDriver, path: str, nbytes: int) -> None:
        super().__init__(path, nbytes)
        self._driver, self._host, self._size = driver, self.base, 0
        self.base = 0

    def reserve(self, call: Call) -> None:
        blocks = ((p.offset, p.nbytes) for p in (*call.ins, *call.outs))
        end = max((offset + size for offset, size in (*blocks, call.workspace, call.bound)), default=0)
        if end > self._size:
            # An address that moves would let a stale pointer look right: the first call reserves room.
            self._size = 2 * end + (256 << 20)
            self.base = self._driver.allocate(self._size)

    def before(self, call: Call) -> None:
        self.reserve(call)
        for placed in (*call.ins, *call.outs):
            self._driver.copy_to_device(self.base + placed.offset, self._host + placed.offset, placed.nbytes)
        self._driver.synchronise()  # our stream waits for none, this copy's included

    def after(self, call: Call) -> None:
        for placed in (*call.ins, *call.outs):
            self._driver.copy_to_host(self._host + placed.offset, self.base + placed.offset, placed.nbytes)


class _Runner:
    def __init__(self, channel: socket.socket, mode: str) -> None:
        self._channel = channel
        self._reader = channel.makefile("r", encoding="utf-8", newline="\n")
        self._driver: CudaDriver | None = None
        self._stream = 0
        if mode == "cuda":
            self._driver = CudaDriver()
            self._driver.use_primary_context()
            self._stream = self._driver.stream()
        self._memory = _HostMemory.__new__(_HostMemory)
        self._library: ctypes.CDLL | None = None
        self._host_state = ctypes.c_void_p()
        self._sets: dict[int, Call] = {}
        self._flush = 0
        self._late = LateInputs(self._driver, self._stream) if self._driver else None

    def serve(self) -> None:
        """Answer until the judge says quit or goes away."""
        while line := self._reader.readline():
            match line.split():
                case ["hello", "1"]:
                    pass
                case ["arena", kind, where, nbytes]:
                    self._memory = self._mapped(kind, where, int(nbytes))
                case ["load", *path]:
                    self._load(line[len("load ") :].rstrip("\n") if path else "")
                case ["call", nonce, verb]:
                    self._call(nonce, verb, received(self._reader))
                case ["define", nonce, index]:
                    self._define(nonce, int(index), received(self._reader))
                case ["burst", nonce, count, mode, *order]:
                    self._burst(nonce, int(count), mode == "cold", [int(number) for number in order])
                case ["watch", nonce, count, *_]:
                    self._burst(nonce, int(count), False, (), Watch(line.rstrip("\n").split(" ", 3)[3]))
                case ["quit"]:
                    return
                case _:
                    raise SystemExit(f"not a line of the runner protocol: {line[:80]!r}")

    def _say(self, line: str) -> None:
        self._channel.sendall((line + "\n").encode())

    def _mapped(self, kind: str, where: str, nbytes: int) -> _HostMemory:
        if kind == "ipc" and self._driver:
            return _IpcMemory(self._driver, where)
        if self._driver:
            return _MirroredMemory(self._driver, where, nbytes)
        return _HostMemory(where, nbytes)

    def _load(self, path: str) -> None:
        try:
            self._library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            self._say(f"error link_error {' '.join(str(error).split())}")
            return
        self._say(f"ready 1 {os.getpid()}")

    def _call(self, nonce: str, verb: str, call: Call) -> None:
        function = getattr(self._library, SYMBOLS[verb], None)
        if function is None:
            self._say(f"done {nonce} {NOT_EXPORTED} 0 0 0 0")
            return
        workspace, bound = ctypes.c_int64(), ctypes.c_int64()
        sizes = (ctypes.byref(workspace), ctypes.byref(bound)) if verb == "sizes" else ()
        rc, error, event_us = 0, 0, 0.0
        try:
            self._memory.before(call)
            struct = c_call(call, self._memory.base, self._stream, self._host_state)
            late = self._late if verb == "run" else None
            if self._driver and late and late.hold(call, self._memory.base):
                self._evict(self._driver, QUEUE_FILLS)
                late.bring()
            start = self._mark()
            rc = int(function(ctypes.byref(struct), *sizes))
            end = self._mark()
            if self._driver:
                if late:
                    late.keep()
                self._driver.synchronise_stream(self._stream)
                event_us = self._driver.elapsed_us(start, end)
                if late:
                    late.put_back()
                self._memory.after(call)
                # Last, so that work left on another stream is not waited for before the judge reads.
                error = self._pending_error()
        except CudaDriverError as failure:
            error = failure.number
        self._say(f"done {nonce} {rc} {error} {event_us:.3f} {workspace.value} {bound.value}")

    def _define(self, nonce: str, index: int, call: Call) -> None:
        error = 0
        try:
            self._memory.reserve(call)
        except CudaDriverError as failure:
            error = failure.number
        self._sets[index] = call
        self._say(f"done {nonce} 0 {error} 0 0 0")

    def _mark(self) -> int:
        if self._driver is None:
            return 0
        event = self._driver.event()
        self._driver.record(event, self._stream)
        return event

    def _pending_error(self) -> int:
        """The runtime's own last error, where the candidate's library lets us ask."""
        last = getattr(self._library, "cudaGetLastError", None)
        return int(last()) if last is not None else 0

    def _burst(
        self, nonce: str, count: int, cold: bool, order: Sequence[int], watch: Watch | None = None
    ) -> None:
        function = getattr(self._library, SYMBOLS["run"])
        driver, rc, error, left_us = self._driver, 0, 0, 0.0
        times: list[float] = []
        host_us: list[float] = []
        try:
            if driver is None or not self._sets:
                raise SystemExit("a burst needs a device and defined sets")
            for call in self._sets.values():
                self._memory.before(call)
            structs = [
                c_call(call, self._memory.base, self._stream, self._host_state)
                for call in self._sets.values()
            ]
            if not cold:
                self._evict(driver, QUEUE_FILLS)
            marks, pinning = [], cold and driver.pins_l2()
            late = (
                LateSets(driver, self._stream, list(self._sets.values()), self._memory.base) if cold else None
            )
            for launch in range(count):
                number = order[launch] if order else launch % len(structs)
                if late:
                    late.bring(number)
                if pinning:
                    driver.release_persisting_l2()
                if cold:
                    self._evict(driver, FILLS_AHEAD)
                start, began = self._mark(), time.perf_counter()
                rc = rc or int(function(ctypes.byref(structs[number])))
                host_us.append((time.perf_counter() - began) * 1e6)
                marks.append((start, self._mark()))
            driver.synchronise_stream(self._stream)
            left_us = -time.perf_counter() * 1e6
            driver.synchronise()
            left_us += time.perf_counter() * 1e6
            if late:
                late.put_back()
            for call in self._sets.values():
                self._memory.after(call)
            times = [driver.elapsed_us(start, end) for start, end in marks]
            for start, end in marks:
                driver.forget(start)
                driver.forget(end)
            error = self._pending_error()
        except CudaDriverError as failure:
            error = failure.number
        self._say(f"times {nonce} " + " ".join(f"{time:.3f}" for time in times))
        self._say(f"host {nonce} " + " ".join(f"{time:.3f}" for time in host_us))
        if watch:
            self._say(f"busy {nonce} {watch.said(QUEUE_FILLS)}")
        self._say(f"done {nonce} {rc} {error} {left_us:.3f} 0 0")

    def _evict(self, driver: CudaDriver, fills: int) -> None:
        nbytes = _FLUSH_FACTOR * driver.l2_bytes()
        self._flush = self._flush or driver.allocate(nbytes)
        for _ in range(fills):
            driver.fill(self._flush, 0, nbytes, self._stream)


def main() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it: too large a file is to be the end
    channel = socket.socket(fileno=int(sys.argv[-1]))
    try:
        runner = _Runner(channel, sys.argv[1])
    except CudaDriverError as error:
        channel.sendall(f"error environment {error}\n".encode())
        return
    runner.serve()


if __name__ == "__main__":
    main()
