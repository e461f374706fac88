"""Inputs that are there only when the call's stream comes to them, and results taken right behind the call.

Work that a candidate does on a stream of its own, without waiting for the call's stream, then reads poison;
work that the call's stream does not wait for comes too late.  No torch.
"""

from collections.abc import Sequence

from .abi import BUFFER, PARAMETER, POISON, Call
from .cuda_driver import CudaDriver

SHARE = 0.25
"""Of the free device memory: tensors that would need more are left where they are."""


class LateSets:
    """Of timed launches: activations of a set come ahead of its own launch alone, until then they are poison.

    What a candidate computes ahead, between two launches, it computes from poison.

    Args:
        base: the arena's address.
    """

    def __init__(self, driver: CudaDriver, stream: int, calls: Sequence[Call], base: int) -> None:
        self._driver, self._stream = driver, stream
        inputs = [[t for t in call.ins if not t.flags & (PARAMETER | BUFFER)] for call in calls]
        nbytes = sum(tensor.nbytes for tensors in inputs for tensor in tensors)
        self._stash = driver.allocate(nbytes) if 0 < nbytes < SHARE * driver.free_bytes() else 0
        self._copies: list[list[tuple[int, int, int]]] = []
        end = self._stash
        for tensors in inputs if self._stash else ():
            self._copies.append([])
            for tensor in tensors:
                if tensor.nbytes:
                    self._copies[-1].append((base + tensor.offset, end, tensor.nbytes))
                end += tensor.nbytes
        for place, aside, size in self._all():
            driver.copy(aside, place, size, stream)
            driver.fill(place, POISON, size, stream)

    def bring(self, number: int) -> None:
        """Queue one set's inputs."""
        for place, aside, nbytes in self._copies[number] if self._copies else ():
            self._driver.copy(place, aside, nbytes, self._stream)

    def put_back(self) -> None:
        """All of them, and give the memory back."""
        for place, aside, nbytes in self._all():
            self._driver.copy(place, aside, nbytes, self._stream)
        self._driver.synchronise_stream(self._stream)
        if self._stash:
            self._driver.free(self._stash)

    def _all(self) -> list[tuple[int, int, int]]:
        return [copy for copies in self._copies for copy in copies]


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
