"""The few driver calls that the judge and a runner need, through ctypes.  No torch, no CUDA toolkit."""

import contextlib
import ctypes
from collections.abc import Iterator

IPC_HANDLE_BYTES = 64
_L2_CACHE_SIZE = 38  # CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
_IPC_LAZY_PEER_ACCESS = 1
_STREAM_NON_BLOCKING = 1
_LIMIT_PERSISTING_L2 = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE
_UNSUPPORTED_LIMIT = 215  # CUDA_ERROR_UNSUPPORTED_LIMIT


class CudaDriverError(Exception):
    """A driver call failed; `number` is the CUresult, 0 when there is no driver at all."""

    def __init__(self, number: int, name: str, call: str) -> None:
        super().__init__(f"{call}: {name}" + (f" ({number})" if number else ""))
        self.number, self.name = number, name


class _IpcHandle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_char * IPC_HANDLE_BYTES),)


class CudaDriver:
    """``libcuda.so.1`` with errors raised.

    Raises:
        CudaDriverError: the driver is not installed.
    """

    def __init__(self) -> None:
        try:
            self._lib = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise CudaDriverError(0, f"no NVIDIA driver here: {error}", "libcuda.so.1") from error
        self._call("cuInit", 0)

    def _call(self, symbol: str, *arguments: object) -> None:
        number = getattr(self._lib, symbol)(*arguments)
        if number:
            raise CudaDriverError(number, self.error_name(number), symbol)

    def error_name(self, number: int) -> str:
        """``CUDA_ERROR_ILLEGAL_ADDRESS`` for 700."""
        text = ctypes.c_char_p()
        known = self._lib.cuGetErrorName(number, ctypes.byref(text)) == 0 and text.value
        return text.value.decode() if known and text.value else f"error {number}"

    def use_primary_context(self, index: int = 0) -> None:
        """Make the device's primary context current: the one that the CUDA runtime uses too."""
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(device), index)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)
        self._device = device

    def l2_bytes(self) -> int:
        size = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(size), _L2_CACHE_SIZE, self._device)
        return size.value

    def allocate(self, nbytes: int) -> int:
        pointer = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(1, nbytes)))
        return pointer.value

    def free(self, pointer: int) -> None:
        self._call("cuMemFree_v2", ctypes.c_uint64(pointer))

    def ipc_handle(self, pointer: int) -> bytes:
        handle = _IpcHandle()
        self._call("cuIpcGetMemHandle", ctypes.byref(handle), ctypes.c_uint64(pointer))
        return bytes(handle)

    def open_ipc(self, handle: bytes) -> int:
        """Map another process's allocation; the address is valid in this process."""
        pointer = ctypes.c_uint64()
        value = _IpcHandle.from_buffer_copy(handle)
        self._call("cuIpcOpenMemHandle_v2", ctypes.byref(pointer), value, _IPC_LAZY_PEER_ACCESS)
        return pointer.value

    def stream(self) -> int:
        """A stream that does not wait for the legacy default stream."""
        stream = ctypes.c_void_p()
        self._call("cuStreamCreate", ctypes.byref(stream), _STREAM_NON_BLOCKING)
        return stream.value or 0

    def synchronise_stream(self, stream: int) -> None:
        self._call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def synchronise(self) -> None:
        self._call("cuCtxSynchronize")

    def copy_to_device(self, pointer: int, host: int, nbytes: int) -> None:
        self._call(
            "cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), ctypes.c_void_p(host), ctypes.c_size_t(nbytes)
        )

    def copy_to_host(self, host: int, pointer: int, nbytes: int) -> None:
        self._call(
            "cuMemcpyDtoH_v2", ctypes.c_void_p(host), ctypes.c_uint64(pointer), ctypes.c_size_t(nbytes)
        )

    def copy(self, to: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within device memory, in the stream's order."""
        self._call(
            "cuMemcpyDtoDAsync_v2",
            ctypes.c_uint64(to),
            ctypes.c_uint64(source),
            ctypes.c_size_t(nbytes),
            ctypes.c_void_p(stream),
        )

    def free_bytes(self) -> int:
        """Device memory that nobody holds."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def pins_l2(self) -> bool:
        """May data be pinned in the L2 cache, as this process has set it?"""
        held = ctypes.c_size_t()
        try:
            self._call("cuCtxGetLimit", ctypes.byref(held), _LIMIT_PERSISTING_L2)
        except CudaDriverError as error:
            if error.number == _UNSUPPORTED_LIMIT:  # before compute capability 8.0
                return False
            raise
        return held.value > 0

    def release_persisting_l2(self) -> None:
        """Let data that was pinned in the L2 cache be evicted like any other; waits for the device."""
        self._call("cuCtxSynchronize")
        self._call("cuCtxResetPersistingL2Cache")

    def fill(self, pointer: int, value: int, nbytes: int, stream: int) -> None:
        """Set bytes on the stream: also what evicts the L2 cache between timed launches."""
        self._call(
            "cuMemsetD8Async",
            ctypes.c_uint64(pointer),
            ctypes.c_ubyte(value),
            ctypes.c_size_t(nbytes),
            ctypes.c_void_p(stream),
        )

    @contextlib.contextmanager
    def profiled(self) -> Iterator[None]:
        """What a profiler that waits for a start looks at."""
        self._call("cuProfilerStart")
        yield
        self._call("cuProfilerStop")

    def event(self) -> int:
        event = ctypes.c_void_p()
        self._call("cuEventCreate", ctypes.byref(event), 0)
        return event.value or 0

    def forget(self, event: int) -> None:
        self._call("cuEventDestroy_v2", ctypes.c_void_p(event))

    def record(self, event: int, stream: int) -> None:
        self._call("cuEventRecord", ctypes.c_void_p(event), ctypes.c_void_p(stream))

    def elapsed_us(self, start: int, end: int) -> float:
        milliseconds = ctypes.c_float()
        self._call(
            "cuEventElapsedTime", ctypes.byref(milliseconds), ctypes.c_void_p(start), ctypes.c_void_p(end)
        )
        return milliseconds.value * 1e3
