"""Event times and cold caches, in a process with torch."""

import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor


@cache
def _flush_block(device: torch.device) -> Tensor:
    """Twice the size of the L2 cache."""
    nbytes = 2 * torch.cuda.get_device_properties(device).L2_cache_size
    return torch.empty(nbytes, dtype=torch.uint8, device=device)


def evict(device: torch.device, fills: int = 1) -> None:
    """Write over the L2 cache, `fills` times, so that the next launch finds its data in memory."""
    if device.type == "cuda":
        for _ in range(fills):
            _flush_block(device).zero_()


def evictor(device: torch.device) -> Callable[[], object]:
    """`evict` as a call that looks up no name."""
    return _flush_block(device).zero_ if device.type == "cuda" else _on_no_device


def current_stream(device: torch.device) -> Callable[[], int]:
    """What says which stream is current, as CUDA numbers it; it looks up no name."""
    if device.type != "cuda":
        return int
    index = torch.cuda.current_device() if device.index is None else device.index
    return partial(torch._C._cuda_getCurrentRawStream, index)


def work_left(device: torch.device) -> Callable[[], float]:
    """What waits for the stream that is current now, whichever is by then, and says for how many microseconds
    other streams work on after it."""
    if device.type != "cuda":
        return float
    now, own, all_streams = time.perf_counter, torch.cuda.current_stream(device), torch.cuda.synchronize
    wait = own.synchronize

    def left_us() -> float:
        wait()
        began = now()
        all_streams(device)
        return (now() - began) * 1e6

    return left_us


_record: Any = getattr(torch._C._CudaEventBase, "record", None)
"""Of CUDA's events itself, which no class in Python stands before; there is none in a build without CUDA."""


class Clock:
    """Event times on a device's current stream; nothing on a CPU, where a time would mean nothing.

    What begins and ends it is made ahead of what is timed: to call it looks up no name that could have been
    replaced since.
    """

    def __init__(self, device: torch.device) -> None:
        self._events: tuple[Any, Any] | None = None
        self.start: Callable[[], object] = _on_no_device
        self.stop: Callable[[], object] = _on_no_device
        if device.type == "cuda":
            make: Any = torch.cuda.Event
            self._events = (make(enable_timing=True), make(enable_timing=True))
            stream = torch.cuda.current_stream(device)
            self.start, self.stop = (partial(_record, event, stream) for event in self._events)

    def elapsed_us(self) -> float:
        """Waits for the end."""
        if self._events is None:
            return 0.0
        self._events[1].synchronize()
        return float(self._events[0].elapsed_time(self._events[1]) * 1e3)


def _on_no_device() -> None:
    pass
