"""Inputs that are there only when the call's stream comes to them, and results taken right behind the call.

Work that a candidate does on a stream of its own, without waiting for the call's stream, then reads poison;
work that the call's stream does not wait for comes too late.  No torch.
"""

from .abi import BUFFER, PARAMETER, Call
from .cuda_driver import CudaDriver

POISON = 0xFF
SHARE = 0.25
"""Of the free device memory: tensors that would need more are left where they are."""


class LateInputs:
    """For one call at a time: `hold`, something slow, `bring`, the call, `keep`, `put_back`."""

    def __init__(self, driver: CudaDriver, stream: int) -> None:
        self._driver, self._stream = driver, stream
        self._stash, self._size = 0, 0
        self._ins: list[tuple[int, int, int]] = []
        self._outs: list[tuple[int, int, int]] = []

    def hold(self, call: Call, base: int) -> bool:
        """Move the activations aside and poison their places; False where memory does not allow it."""
        activations = [(t.offset, t.nbytes) for t in call.ins if not t.flags & (PARAMETER | BUFFER)]
        results = [(t.offset, t.nbytes) for t in call.outs]
        self._ins, self._outs = [], []
        if not self._reserve(sum(nbytes for _, nbytes in (*activations, *results))):
            return False
        end = self._stash
        for kept, tensors in ((self._ins, activations), (self._outs, results)):
            for offset, nbytes in tensors:
                kept.append((base + offset, end, nbytes))
                end += nbytes
        for place, aside, nbytes in self._ins:
            if nbytes:
                self._driver.copy(aside, place, nbytes, self._stream)
                self._driver.fill(place, POISON, nbytes, self._stream)
        self._driver.synchronise_stream(self._stream)
        return True

    def bring(self) -> None:
        """Queue the inputs' return."""
        for place, aside, nbytes in self._ins:
            if nbytes:
                self._driver.copy(place, aside, nbytes, self._stream)

    def keep(self) -> None:
        """Queue a copy of the results as they are then."""
        for place, aside, nbytes in self._outs:
            if nbytes:
                self._driver.copy(aside, place, nbytes, self._stream)

    def put_back(self) -> None:
        """Let the kept results be what the judge reads."""
        for place, aside, nbytes in self._outs:
            if nbytes:
                self._driver.copy(place, aside, nbytes, self._stream)
        self._driver.synchronise_stream(self._stream)

    def _reserve(self, nbytes: int) -> bool:
        if nbytes > self._size:
            if nbytes > SHARE * self._driver.free_bytes():
                return False
            if self._stash:
                self._driver.free(self._stash)
            self._stash, self._size = self._driver.allocate(nbytes), nbytes
        return True
