"""Run one ``.so`` candidate once, for compute-sanitizer: ``boot.py sanitized FOLDER LIBRARY``.  No torch.

FOLDER holds one call as ``specimen.py`` wrote it.  Every tensor is an allocation of its own; results and
workspace are left as the driver gives them, so that reading them first is reading what nobody wrote.
"""

import ctypes
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .abi import OK, SYMBOLS, UNSUPPORTED_SHAPE, Call, Placed, c_call
from .cuda_driver import CudaDriver

UNSUPPORTED_EXIT = 42
CALL, DATA = "call.txt", "data.bin"


def main() -> int:
    folder, library = Path(sys.argv[1]), sys.argv[2]
    driver = CudaDriver()
    driver.use_primary_context()
    call = Call()
    for line in (folder / CALL).read_text().splitlines():
        call.read(line.split())
    data = (folder / DATA).read_bytes()
    call.ins = [_filled(driver, tensor, data) for tensor in call.ins]
    call.outs = [_allocated(driver, tensor) for tensor in call.outs]
    loaded = ctypes.CDLL(library, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    stream, state = driver.stream(), ctypes.c_void_p()
    workspace, bound = ctypes.c_int64(), ctypes.c_int64()
    verbs: Sequence[tuple[str, tuple[object, ...]]] = (
        ("sizes", (ctypes.byref(workspace), ctypes.byref(bound))),
        ("bind", ()),
        ("run", ()),
        ("unbind", ()),
    )
    for verb, more in verbs:
        function = getattr(loaded, SYMBOLS[verb], None)
        if function is None:
            continue
        rc = int(function(ctypes.byref(c_call(call, 0, stream, state)), *more))
        driver.synchronise()
        if rc == UNSUPPORTED_SHAPE:
            return UNSUPPORTED_EXIT
        if rc != OK:
            print(f"stitch_{verb} returned {rc}", file=sys.stderr)
            return 1
        if verb == "sizes":
            call.workspace = (driver.allocate(workspace.value), workspace.value)
            call.bound = (driver.allocate(bound.value), bound.value)
    return 0


def _allocated(driver: CudaDriver, tensor: Placed) -> Placed:
    """The tensor at an address of its own, which takes the offset's place."""
    return replace(tensor, offset=driver.allocate(tensor.nbytes))


def _filled(driver: CudaDriver, tensor: Placed, data: bytes) -> Placed:
    moved = _allocated(driver, tensor)
    if tensor.nbytes:
        content = ctypes.create_string_buffer(
            data[tensor.offset : tensor.offset + tensor.nbytes], tensor.nbytes
        )
        driver.copy_to_device(moved.offset, ctypes.addressof(content), tensor.nbytes)
    return moved


if __name__ == "__main__":
    sys.exit(main())
