"""When the device really worked, as CUPTI records it: kernels, copies and fills.  No torch, no headers.

Events lie around what a process launches; these times are taken by the driver for each piece of work.  The
layout of records is that of ``cupti_activity.h``, where those of all three kinds begin alike.
"""

import ctypes
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

NAMES = ("libcupti.so.13", "libcupti.so.12", "libcupti.so")
_KINDS = {1: "copy", 2: "fill", 10: "kernel"}
"""CUPTI_ACTIVITY_KIND_MEMCPY, _MEMSET and _CONCURRENT_KERNEL; the last leaves kernels side by side."""
_FORCED = 1  # CUPTI_ACTIVITY_FLAG_FLUSH_FORCED: records of kernels that are under way, too
_BUFFER_WORDS = 1 << 17


class CuptiError(Exception):
    """CUPTI is not there, or refuses: another profiler is at work, or it is not this driver's."""


@dataclass(frozen=True, order=True)
class Span:
    """One piece of work on the device, in nanoseconds of a clock of its own."""

    start_ns: int
    end_ns: int
    kind: str
    """``kernel``, ``copy`` or ``fill``."""


class _Record(ctypes.Structure):
    """What the records of all three kinds have in common."""

    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("_differs", ctypes.c_uint32 * 3),
        ("start", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
    )


_REQUESTED = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.POINTER(ctypes.c_size_t),
)
_COMPLETED = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
)


class Cupti:
    """The library at `path`, recording between `start` and `stop`.

    Raises:
        CuptiError: from every method.
    """

    def __init__(self, path: str) -> None:
        try:
            self._lib = ctypes.CDLL(path)
        except OSError as error:
            raise CuptiError(f"{Path(path).name} cannot be loaded: {error}") from error
        self._spans: list[Span] = []
        self._buffers: dict[int, ctypes.Array[ctypes.c_uint64]] = {}
        # Kept: CUPTI calls them for as long as the process lives, from a thread of its own.
        self._callbacks = (_REQUESTED(self._requested), _COMPLETED(self._completed))
        self._call("cuptiActivityRegisterCallbacks", *self._callbacks)

    def start(self) -> None:
        self._spans.clear()
        for kind in _KINDS:
            self._call("cuptiActivityEnable", kind)

    def stop(self) -> list[Span]:
        """What ran since `start`, in the order of its start; the device must be idle."""
        self._call("cuptiActivityFlushAll", _FORCED)
        for kind in _KINDS:
            self._call("cuptiActivityDisable", kind)
        return sorted(self._spans)

    def _call(self, symbol: str, *arguments: object) -> None:
        try:
            number = getattr(self._lib, symbol)(*arguments)
        except AttributeError:
            raise CuptiError(f"it has no {symbol}") from None
        if number:
            text = ctypes.c_char_p()
            self._lib.cuptiGetResultString(number, ctypes.byref(text))
            raise CuptiError(f"{symbol}: {(text.value or b'').decode() or number}")

    def _requested(self, buffer: object, size: object, most: object) -> None:
        words = (ctypes.c_uint64 * _BUFFER_WORDS)()
        self._buffers[ctypes.addressof(words)] = words
        buffer[0], size[0], most[0] = ctypes.addressof(words), ctypes.sizeof(words), 0  # type: ignore[index]

    def _completed(self, _context: int, _stream: int, buffer: int, _size: int, valid: int) -> None:
        record = ctypes.POINTER(_Record)()
        while valid:
            number = self._lib.cuptiActivityGetNextRecord(
                ctypes.c_void_p(buffer), ctypes.c_size_t(valid), ctypes.byref(record)
            )
            if number:  # no more, or one that is not whole
                break
            found = record.contents
            if found.kind in _KINDS and found.end:
                self._spans.append(Span(found.start, found.end, _KINDS[found.kind]))
        self._buffers.pop(buffer, None)


class Watch:
    """One burst under CUPTI, from here on until `said`."""

    def __init__(self, path: str) -> None:
        self._cupti, self._why = None, ""
        try:
            self._cupti = _opened(path)
            self._cupti.start()
        except CuptiError as error:
            self._why = str(error)

    def said(self, fills: int) -> str:
        """For the judge: microseconds of work behind the first `fills` spans, and of how many; or ``- WHY``.

        The device must be idle.
        """
        try:
            spans = self._cupti.stop()[fills:] if self._cupti and not self._why else []
        except CuptiError as error:
            self._why = str(error)
        return f"- {' '.join(self._why.split())}" if self._why else f"{busy_us(spans):.3f} {len(spans)}"


@cache
def _opened(path: str) -> Cupti:
    return Cupti(path)


def busy_us(spans: Iterable[Span]) -> float:
    """For how long at least one of them was under way."""
    total, until = 0, 0
    for span in sorted(spans):
        total += max(0, span.end_ns - max(span.start_ns, until))
        until = max(until, span.end_ns)
    return total / 1e3


def library() -> str:
    """CUPTI's path: the one that torch brought into this process, else a toolkit's; empty: there is none."""
    loaded = {line.split(maxsplit=5)[5].strip() for line in _maps() if "/libcupti.so" in line}
    homes = [Path(os.environ.get(name, "/usr/local/cuda")) for name in ("CUDA_HOME", "CUDA_PATH")]
    folders = [home / part for home in homes for part in ("extras/CUPTI/lib64", "lib64")]
    installed = (str(folder / name) for folder in folders for name in NAMES if (folder / name).exists())
    return min(loaded, default="") or next(installed, "")


def _maps() -> list[str]:
    return Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
