"""What the device reaches at best through PyTorch: bytes a second when copying, FLOP/s of large products."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .measure import once_us
from .session import Emit, Json, Session

COPIED_BYTES = 1 << 30
"""Much more than any cache holds."""
MEMORY_SHARE = 8
"""A tensor takes no more than this part of the free memory."""
EXTENTS = (1024, 2048, 4096, 8192)
LONG_US = 5_000.0
"""A product that takes longer is large enough: larger ones are not tried."""
RUNS = 8
"""After one that warms up; the fastest counts."""
PRODUCTS = {
    "f64": (torch.float64, "highest"),
    "f32": (torch.float32, "highest"),
    "tf32": (torch.float32, "high"),
    "f16": (torch.float16, "highest"),
    "bf16": (torch.bfloat16, "highest"),
}
"""What is multiplied, and ``torch.set_float32_matmul_precision``."""


def peaks(session: Session, params: Json, emit: Emit) -> Json:
    """The judge's method ``peaks``: ``bandwidth`` in bytes/s, FLOP/s by name; no params."""
    device: torch.device = session.task.reference.device
    found = {"bandwidth": bandwidth(device)}
    for name, (dtype, precision) in PRODUCTS.items():
        with _precision(precision):
            found[name] = products(dtype, device)
    torch.cuda.empty_cache()
    return found


def bandwidth(device: torch.device, nbytes: int = COPIED_BYTES) -> float:
    """Bytes that a copy reads and writes, a second."""
    count = min(nbytes, _free(device) // MEMORY_SHARE)
    source = torch.zeros(count, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * count / _fastest_us(lambda: target.copy_(source), device) * 1e6


def products(dtype: torch.dtype, device: torch.device, extents: tuple[int, ...] = EXTENTS) -> float:
    """FLOP/s of the best product of two square matrices with random elements; zeros would heat less."""
    best, generator = 0.0, torch.Generator(device).manual_seed(0)  # the reference's own is left alone
    for n in extents:
        a, b = (torch.randn(n, n, device=device, generator=generator).to(dtype) for _ in range(2))
        c = torch.empty(n, n, dtype=dtype, device=device)
        us = _fastest_us(lambda a=a, b=b, c=c: torch.mm(a, b, out=c), device)  # type: ignore[misc]
        best = max(best, 2.0 * n**3 / us * 1e6)
        if us > LONG_US:
            break
    return best


def _fastest_us(call: Callable[[], Any], device: torch.device) -> float:
    return min([once_us(call, device) for _ in range(RUNS + 1)][1:])


def _free(device: torch.device) -> int:
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 1 << 40


@contextlib.contextmanager
def _precision(name: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
