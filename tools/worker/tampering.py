"""What a Python candidate must leave as it was: numeric flags, clocks, torch's functions, threads."""

import builtins
import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

FLAGS: Mapping[str, Callable[[], Any]] = {
    "torch.backends.cuda.matmul.allow_tf32": lambda: torch.backends.cuda.matmul.allow_tf32,
    "torch.backends.cudnn.allow_tf32": lambda: torch.backends.cudnn.allow_tf32,
    "torch.backends.cudnn.benchmark": lambda: torch.backends.cudnn.benchmark,
    "torch.backends.cudnn.enabled": lambda: torch.backends.cudnn.enabled,
    "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction": lambda: (
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
    ),
    "the matmul precision": torch.get_float32_matmul_precision,
    "the default dtype": torch.get_default_dtype,
    "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
    "autocast": torch.is_autocast_enabled,
}
"""Global state of torch that changes how fast or how exact other code is."""
FUNCTIONS = (
    (torch, "allclose isclose equal empty zeros rand randn manual_seed compile"),
    (torch.Tensor, "copy_ to view reshape clone __eq__"),
    (torch.cuda, "Event synchronize Stream current_stream"),
    (torch.cuda.Event, "record elapsed_time synchronize"),
    (torch.testing, "assert_close"),
    (time, "time perf_counter perf_counter_ns monotonic monotonic_ns"),
    (random, "random seed"),
    (builtins, "open print abs max min len"),
)
"""What others measure and compare with: (module or class, names)."""


class Untouched:
    """A snapshot, to be compared with what there is later."""

    def __init__(self) -> None:
        self._flags = {name: read() for name, read in FLAGS.items()}
        self._functions = {
            (owner, name): getattr(owner, name) for owner, names in FUNCTIONS for name in names.split()
        }
        self._threads = set(threading.enumerate())

    def changes(self) -> str:
        """What is no longer as it was, a sentence; empty when all is."""
        for name, read in FLAGS.items():
            if (now := read()) != self._flags[name]:
                return f"{name} was changed from {self._flags[name]} to {now}"
        for (owner, name), before in self._functions.items():
            if getattr(owner, name, None) is not before:
                return f"{getattr(owner, '__name__', owner)}.{name} was replaced"
        left = set(threading.enumerate()) - self._threads
        return f"{len(left)} threads go on: {', '.join(sorted(t.name for t in left))[:100]}" if left else ""
