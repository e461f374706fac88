"""Event times and cold caches, in a process with torch."""

from functools import cache
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


class Clock:
    """Event times on a device; nothing on a CPU, where a time would mean nothing."""

    def __init__(self, device: torch.device) -> None:
        self._events: tuple[Any, Any] | None = None
        self._ended = False
        if device.type == "cuda":
            make: Any = torch.cuda.Event
            self._events = (make(enable_timing=True), make(enable_timing=True))
            self._events[0].record()

    def stopped(self) -> "Clock":
        if self._events and not self._ended:
            self._events[1].record()
            self._ended = True
        return self

    def elapsed_us(self) -> float:
        self.stopped()
        if self._events is None:
            return 0.0
        self._events[1].synchronize()
        return float(self._events[0].elapsed_time(self._events[1]) * 1e3)
