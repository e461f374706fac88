"""Event times and cold caches, in a process with torch."""

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


_record: Any = getattr(torch._C._CudaEventBase, "record", None)
"""Of CUDA's events itself, which no class in Python stands before; there is none in a build without CUDA."""


class Clock:
    """Event times on a device; nothing on a CPU, where a time would mean nothing."""

    def __init__(self, device: torch.device) -> None:
        self._events: tuple[Any, Any] | None = None
        if device.type == "cuda":
            make: Any = torch.cuda.Event
            self._events = (make(enable_timing=True), make(enable_timing=True))
            self._stream = torch.cuda.current_stream(device)
            self._events[0].record(self._stream)

    def stopper(self) -> Callable[[], object]:
        """Ends it, on the stream on which it began.

        Made ahead of what is timed: to call it looks up no name that could have been replaced since.
        """
        return partial(_record, self._events[1], self._stream) if self._events else _on_no_device

    def elapsed_us(self) -> float:
        """Waits for the end."""
        if self._events is None:
            return 0.0
        self._events[1].synchronize()
        return float(self._events[0].elapsed_time(self._events[1]) * 1e3)


def _on_no_device() -> None:
    pass
