"""Memory that the judge owns and a runner maps: slots between guard zones, poison, checks.

A host arena is a memory file that the runner inherits; it leaves nothing behind on disk.  A CUDA
arena is one driver allocation shared by IPC handle.
"""

import math
import mmap
import os
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from .abi import POISON
from .cuda_driver import CudaDriver, CudaDriverError

ALIGNMENT = 256
GUARD_BYTES = 4096
_GUARD_LOW, _GUARD_KINDS, _GUARD_HIGH = 0xF1, 14, 0xFF
"""Pairs of bytes that are a NaN in every floating type, so that a read past a tensor's end shows in the
result (a small number would hide).  They differ from the poison, so that copied poison shows as a write,
and from each other: arithmetic keeps a NaN's bits, and a NaN that was read in one guard zone must not
look untouched when it is written into another."""
DEVICE_PAGE_BYTES = 2 << 20
"""What a device allocation is rounded up to.  Another process maps a block of whole pages by pages, any other
by pieces of 64 KiB: kernels that stream through such a block take twice as long (measured on an H200: 255 us
instead of 135 us for 512 MiB, as in memory of the process's own)."""
HOST_ARENA_BYTES = 64 << 30
"""Address space of a host arena; pages that are never touched cost nothing."""


@dataclass(frozen=True)
class Slot:
    """`nbytes` bytes at `offset` of an arena."""

    name: str
    offset: int
    nbytes: int

    @property
    def end(self) -> int:
        return self.offset + self.nbytes


class Layout:
    """Slots one after another, each aligned to 256 bytes and between guard zones."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self.end = 0

    def add(self, name: str, nbytes: int) -> Slot:
        slot = Slot(name, _aligned(self.end + GUARD_BYTES), nbytes)
        self.slots.append(slot)
        self.end = slot.end
        return slot

    @property
    def nbytes(self) -> int:
        """Bytes that an arena needs for this layout, last guard zone included."""
        return _aligned(self.end + GUARD_BYTES)

    def guards(self) -> list[tuple[int, int, str]]:
        """Every guard zone as (start, end, what lies beside it)."""
        zones, start, before = [], 0, ""
        for slot in self.slots:
            beside = f"before {slot.name}" if not before else f"after {before}, before {slot.name}"
            zones.append((start, slot.offset, beside))
            start, before = slot.end, slot.name
        return [*zones, (start, self.nbytes, f"after {before}" if before else "")]


class Arena(Protocol):
    """`memory` is one uint8 tensor over the whole block, on the judge's device."""

    memory: Tensor
    nbytes: int
    note: str
    """What a person should know about this kind of sharing; empty when there is nothing."""
    descriptors: tuple[int, ...]
    """File descriptors that the runner must inherit."""

    def announce(self) -> str: ...
    def close(self) -> None: ...


class HostArena:
    """`nbytes` bytes of shared host memory, zero until touched."""

    def __init__(self, nbytes: int, note: str = "") -> None:
        self._fd = os.memfd_create("stitch-arena", os.MFD_CLOEXEC)
        os.ftruncate(self._fd, nbytes)
        self._map = mmap.mmap(self._fd, nbytes)
        self.memory = torch.frombuffer(self._map, dtype=torch.uint8)
        self.note, self.nbytes = note, nbytes
        self.descriptors: tuple[int, ...] = (self._fd,)

    def announce(self) -> str:
        return f"arena file /proc/self/fd/{self._fd} {self.nbytes}"

    def close(self) -> None:
        # The mapping itself goes with the last tensor that views it.
        os.close(self._fd)
        self.descriptors = ()


class CudaArena:
    """`nbytes` bytes of device memory of `device`, shared by a CUDA IPC handle.

    Raises:
        CudaDriverError: no memory, or the system refuses IPC.
    """

    def __init__(self, nbytes: int, device: torch.device) -> None:
        torch.cuda.init()  # type: ignore[no-untyped-call]
        torch.cuda.synchronize(device)
        self._driver = CudaDriver()
        with torch.cuda.device(device):
            torch.zeros(1, device=device)
            self._pointer = self._driver.allocate(_aligned(nbytes, DEVICE_PAGE_BYTES))
        try:
            self._handle = self._driver.ipc_handle(self._pointer)
        except CudaDriverError:
            self._driver.free(self._pointer)
            raise
        self.memory = torch.as_tensor(DeviceBlock(self._pointer, nbytes), device=device)
        self.note, self.nbytes = "", nbytes
        self.descriptors: tuple[int, ...] = ()

    def announce(self) -> str:
        return f"arena ipc {self._handle.hex()} {self.nbytes}"

    def close(self) -> None:
        torch.cuda.synchronize()
        self._driver.free(self._pointer)


class DeviceBlock:
    """Lets torch view driver memory without owning it."""

    def __init__(self, pointer: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (pointer, False),
            "version": 3,
            "strides": None,
        }


def open_arena(nbytes: int, device: torch.device) -> Arena:
    """An arena for candidates that run on `device`; host memory, said in its note, where IPC is refused."""
    if device.type != "cuda":
        return HostArena(max(nbytes, HOST_ARENA_BYTES))
    try:
        return CudaArena(nbytes, device)
    except CudaDriverError as error:
        note = f"tensors are copied through host memory, guard zones are not watched: {error}"
        return HostArena(max(nbytes, HOST_ARENA_BYTES), note)


def view(arena: Arena, slot: Slot, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    """The slot's memory as a contiguous tensor; writing to it writes the arena."""
    count = math.prod(shape)
    if count == 0:
        return torch.empty(shape, dtype=dtype, device=arena.memory.device)
    return arena.memory[slot.offset : slot.offset + count * dtype.itemsize].view(dtype).reshape(shape)


def bytes_of(tensor: Tensor) -> Tensor:
    """Its elements as bytes, one after another; a view where it is contiguous."""
    return tensor.contiguous().view(-1).view(torch.uint8)


def same_bytes(one: Tensor, other: Tensor) -> bool:
    """Equal bit for bit, NaNs too, wherever they lie."""
    return one.numel() == 0 or torch.equal(bytes_of(one), bytes_of(other).to(one.device))


def poison(arena: Arena, slot: Slot) -> None:
    """Fill the slot with bytes that read as NaN or -1."""
    arena.memory[slot.offset : slot.end].fill_(POISON)


def fill_guards(arena: Arena, layout: Layout) -> None:
    """Write the guard pattern into every guard zone."""
    for start, end, _ in layout.guards():
        arena.memory[start:end].copy_(_pattern(start, end, arena.memory.device))


def broken_guards(arena: Arena, layout: Layout) -> list[str]:
    """Where guard zones were written, one sentence each; empty when none was."""
    found = []
    for start, end, beside in layout.guards():
        wrong = (arena.memory[start:end] != _pattern(start, end, arena.memory.device)).nonzero()
        if len(wrong):
            first, last = int(wrong[0]), int(wrong[-1])
            found.append(
                f"{len(wrong)} bytes {beside}: {first} to {last} bytes past the end"
                if not beside.startswith("before")
                else f"{len(wrong)} bytes {beside}: {end - start - last} bytes ahead of its start"
            )
    return found


def _pattern(start: int, end: int, device: torch.device) -> Tensor:
    """The guard's bytes from `start` to `end`, a function of their offsets alone."""
    where = torch.arange(start, end, device=device)
    low = _GUARD_LOW + (where // 2 * 40503 >> 5) % _GUARD_KINDS
    return torch.where(where % 2 == 0, low, _GUARD_HIGH).to(torch.uint8)


def _aligned(offset: int, to: int = ALIGNMENT) -> int:
    return -(-offset // to) * to
