"""Run one ``.so`` candidate alone, for a tool around it: ``boot.py solo FOLDER LIBRARY [RUNS [TRACE]]``.

FOLDER holds one call as ``specimen.py`` wrote it.  Every tensor is an allocation of its own; results and
workspace are left as the driver gives them, so that reading them first is reading what nobody wrote.

Without RUNS the candidate runs once: for compute-sanitizer.  With RUNS it runs once to warm up, then RUNS
times between ``cuProfilerStart`` and ``cuProfilerStop``: for ncu and nsys.  With TRACE torch's profiler
watches those runs instead, through CUPTI, and writes that file; otherwise torch is not imported.
"""

import ctypes
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from .abi import OK, SYMBOLS, UNSUPPORTED_SHAPE, Call, Placed, c_call
from .cuda_driver import CudaDriver

UNSUPPORTED_EXIT = 42
CALL, DATA = "call.txt", "data.bin"
KEPT_BYTES = 64 << 20
"""Of one tensor on disk; a larger one is filled by repeating them."""


class Solo:
    """A loaded candidate and the one call that it is given."""

    def __init__(self, folder: Path, library: str) -> None:
        self.driver = CudaDriver()
        self.driver.use_primary_context()
        self._call = Call()
        for line in (folder / CALL).read_text().splitlines():
            self._call.read(line.split())
        with (folder / DATA).open("rb") as data:
            self._call.ins = [_filled(self.driver, tensor, data) for tensor in self._call.ins]
        self._call.outs = [_allocated(self.driver, tensor) for tensor in self._call.outs]
        self._library = ctypes.CDLL(library, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        self._stream, self._state = self.driver.stream(), ctypes.c_void_p()

    def prepare(self) -> None:
        """Sizes and weight-only work."""
        workspace, bound = ctypes.c_int64(), ctypes.c_int64()
        self.verb("sizes", ctypes.byref(workspace), ctypes.byref(bound))
        self._call.workspace = (self.driver.allocate(workspace.value), workspace.value)
        self._call.bound = (self.driver.allocate(bound.value), bound.value)
        self.verb("bind")

    def verb(self, name: str, *more: object, times: int = 1) -> None:
        """Call ``stitch_NAME`` if it is exported, so often in a row, and wait for its work.

        Raises:
            SystemExit: it failed, or does not support these extents.
        """
        function = getattr(self._library, SYMBOLS[name], None)
        if function is None:
            return
        call = ctypes.byref(c_call(self._call, 0, self._stream, self._state))
        for _ in range(times):
            rc = int(function(call, *more))
            if rc == UNSUPPORTED_SHAPE:
                raise SystemExit(UNSUPPORTED_EXIT)
            if rc != OK:
                raise SystemExit(f"stitch_{name} returned {rc}")
        self.driver.synchronise()


def main() -> None:
    folder, library, *options = sys.argv[1:]
    runs, trace = int(options[0]) if options else 0, options[1] if options[1:] else ""
    solo = Solo(Path(folder), library)
    solo.prepare()
    solo.verb("run")
    if trace:
        from .tracing import traced

        traced(lambda: solo.verb("run", times=runs), Path(trace))
    elif runs:
        with solo.driver.profiled():
            solo.verb("run", times=runs)
    solo.verb("unbind")


def _allocated(driver: CudaDriver, tensor: Placed) -> Placed:
    """The tensor at an address of its own, which takes the offset's place."""
    return replace(tensor, offset=driver.allocate(tensor.nbytes))


def _filled(driver: CudaDriver, tensor: Placed, data: BinaryIO) -> Placed:
    """The tensor with its bytes of the file, over and over where not all of them were kept."""
    moved = _allocated(driver, tensor)
    data.seek(tensor.offset)
    block = data.read(min(tensor.nbytes, KEPT_BYTES))
    content = ctypes.create_string_buffer(block, max(1, len(block)))
    for start in range(0, tensor.nbytes, KEPT_BYTES):
        nbytes = min(KEPT_BYTES, tensor.nbytes - start)
        driver.copy_to_device(moved.offset + start, ctypes.addressof(content), nbytes)
    return moved


if __name__ == "__main__":
    main()
