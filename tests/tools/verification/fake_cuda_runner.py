"""The CUDA runner with host memory for a device, for plain C candidates: ``fake_cuda_runner.py cuda FD``."""

import ctypes
import itertools
import mmap
from types import SimpleNamespace

from stitch_tui.tools.worker import runner


class HostDriver:
    """What a runner asks of `CudaDriver`; all work is done at once, every launch takes a microsecond."""

    def __init__(self) -> None:
        self._blocks: dict[int, mmap.mmap] = {}
        self._events = 0

    def use_primary_context(self, index: int = 0) -> None:
        pass

    def l2_bytes(self) -> int:
        return 4096

    def allocate(self, nbytes: int) -> int:
        block = mmap.mmap(-1, max(1, nbytes))
        address = ctypes.addressof(ctypes.c_char.from_buffer(block))
        self._blocks[address] = block
        return address

    def free(self, pointer: int) -> None:
        del self._blocks[pointer]

    def stream(self) -> int:
        return 7

    def synchronise_stream(self, stream: int) -> None:
        assert stream == 7

    def synchronise(self) -> None:
        pass

    def copy_to_device(self, pointer: int, host: int, nbytes: int) -> None:
        ctypes.memmove(pointer, host, nbytes)

    def copy_to_host(self, host: int, pointer: int, nbytes: int) -> None:
        ctypes.memmove(host, pointer, nbytes)

    def copy(self, to: int, source: int, nbytes: int, stream: int) -> None:
        assert stream == 7
        ctypes.memmove(to, source, nbytes)

    def free_bytes(self) -> int:
        return 1 << 30

    def pins_l2(self) -> bool:
        return True

    def release_persisting_l2(self) -> None:
        pass

    def fill(self, pointer: int, value: int, nbytes: int, stream: int) -> None:
        assert stream == 7
        ctypes.memset(pointer, value, nbytes)

    def event(self) -> int:
        self._events += 1
        return self._events

    def forget(self, event: int) -> None:
        pass

    def record(self, event: int, stream: int) -> None:
        assert stream == 7

    def elapsed_us(self, start: int, end: int) -> float:
        return float(end - start)


if __name__ == "__main__":
    runner.CudaDriver = HostDriver  # type: ignore[assignment, misc]
    microseconds = itertools.count()  # however long this process waits for a processor
    runner.time = SimpleNamespace(perf_counter=lambda: next(microseconds) * 1e-6)  # type: ignore[assignment]
    runner.main()
