"""One call of a candidate's module: inputs and state from the judge's arena, results into it, all checked."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .abi import BUFFER, PARAMETER, POISON, Call, Placed
from .arena import DeviceBlock, bytes_of, same_bytes
from .cuda_driver import CudaDriver
from .device_clock import Clock, evict
from .encoding import DTYPES
from .module_faults import Wrong, raised
from .module_loading import Candidate
from .nesting import filled
from .samples import QUEUE_FILLS

_DTYPES = tuple(DTYPES.values())


class ModuleCalls:
    """A candidate's module between the arena's slots."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._memory = torch.empty(0, dtype=torch.uint8)
        self._arguments: Any = []
        self._model = nn.Module()
        self._inspect: Callable[[str], None] = lambda _: None
        self._changed: Callable[[], str] = str
        """What of the runner is no longer its own."""
        self._may_alias = False
        """Does the reference return memory of its inputs or state?"""
        self._state: dict[str, Tensor] = {}
        self._held: list[Tensor] = []
        self._returned: list[tuple[Tensor, Tensor]] = []

    def _takes(self, candidate: Candidate) -> None:
        self._model, self._inspect = candidate.model, candidate.inspect
        self._state = {**dict(self._model.named_parameters()), **dict(self._model.named_buffers())}

    def _mapped(self, kind: str, where: str, nbytes: int) -> Tensor:
        if kind == "ipc":
            torch.zeros(1, device=self.device)
            pointer = CudaDriver().open_ipc(bytes.fromhex(where))
            return torch.as_tensor(DeviceBlock(pointer, nbytes), device=self.device)
        return torch.from_file(where, shared=True, size=nbytes, dtype=torch.uint8)

    def _view(self, placed: Placed) -> Tensor:
        dtype = _DTYPES[placed.dtype]
        if placed.numel == 0:
            return torch.empty(placed.shape, dtype=dtype, device=self.device)
        count = placed.numel * dtype.itemsize
        return self._memory[placed.offset : placed.offset + count].view(dtype).reshape(placed.shape)

    def _inputs(self, call: Call) -> list[Tensor]:
        """The activations, at addresses that return and at the version of tensors just made."""
        activations = [placed for placed in call.ins if not placed.flags & (PARAMETER | BUFFER)]
        return [self._view(placed).to(self.device).data for placed in activations]

    def _take_state(self, call: Call, which: int) -> None:
        """Copy parameters or buffers from the arena into the module, in place."""
        for placed in call.ins:
            if not placed.flags & which:
                continue
            own = self._state.get(placed.name)
            if own is None:
                if placed.flags & BUFFER:
                    continue
                raise Wrong(
                    "unsupported", f"ModelNew has no parameter {placed.name}: it gets the reference's"
                )
            if own.shape != torch.Size(placed.shape):
                raise Wrong("shape", f"ModelNew's {placed.name} is {tuple(own.shape)}, not {placed.shape}")
            own.copy_(self._view(placed))

    def _forward(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        try:
            returned = self._model(*filled(self._arguments, inputs))
        except BaseException as error:
            raise raised(error, "ModelNew.forward", None) from error
        return _leaves(returned)

    def _run(self, call: Call) -> float:
        self._take_state(call, BUFFER)
        if call.rng[0]:
            torch.manual_seed(call.rng[0])
        inputs = self._late(self._inputs(call))
        changed, clone, clock = self._changed, Tensor.clone, Clock(self.device)
        start, stop = clock.start, clock.stop
        start()
        results = returned = self._forward(inputs)
        stop()
        if self.device.type == "cuda":
            # In the stream's order, nothing waited for: work on another stream comes too late.
            results = [clone(r) if type(r) is Tensor else r for r in results]
        require_own(changed)
        elapsed = clock.elapsed_us()
        self._inspect("in forward")
        self._deliver(call, results)
        self._require_state(call)
        self._require_kept(returned)
        return elapsed

    def _require_kept(self, returned: Sequence[Tensor]) -> None:
        """Raise when this call wrote over the results of the call before, which are the caller's to keep.

        What lies in an input or in the module's state changes with these.
        """
        before, self._returned = self._returned, []
        if not all(same_bytes(result, copy) for result, copy in before):
            raise Wrong("hack_suspected", "forward wrote over the result of the call before")
        shared = {t.untyped_storage().data_ptr() for t in (self._memory, *self._held, *self._state.values())}
        full = [result for result in returned if result.numel()]
        own = [result for result in full if result.untyped_storage().data_ptr() not in shared]
        if len(own) < len(full) and not self._may_alias:
            raise Wrong(
                "hack_suspected", "forward returns memory of its inputs or state, unlike the reference"
            )
        self._returned = [(result, result.clone()) for result in own]

    def _late(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """On a GPU, `inputs` at their addresses, but written only when the stream comes to them.

        Until then they are poisoned, so that work that is not ordered behind the stream shows.
        """
        if self.device.type != "cuda":
            return list(inputs)
        # Kept until the next call: memory that comes free here could be the candidate's next result.
        self._held = held = [tensor.clone() for tensor in inputs]
        for tensor in inputs:
            bytes_of(tensor).fill_(POISON)
        torch.cuda.current_stream().synchronize()
        evict(self.device, QUEUE_FILLS)
        for tensor, values in zip(inputs, held, strict=True):
            tensor.copy_(values)
        return list(inputs)

    def _deliver(self, call: Call, results: Sequence[Tensor]) -> None:
        """Copy results, then changed buffers, into the arena, each checked to be what was asked for."""
        wanted = [placed for placed in call.outs if not placed.flags & BUFFER]
        if len(results) != len(wanted):
            raise Wrong("shape", f"forward returns {len(results)} tensors, not {len(wanted)}")
        for placed, result in zip(wanted, results, strict=True):
            self._accept(placed, result)
            self._view(placed).copy_(result)
        for placed in call.outs[len(wanted) :]:
            if (own := self._state.get(placed.name)) is not None:
                self._view(placed).copy_(own)
        if self.device.type == "cuda":
            torch.cuda.current_stream().synchronize()

    def _require_state(self, call: Call) -> None:
        """Raise for a parameter, or a buffer that the reference leaves alone, that forward has changed."""
        changing = {placed.name for placed in call.outs if placed.flags & BUFFER}
        for placed in call.ins:
            own = self._state.get(placed.name) if placed.flags & (PARAMETER | BUFFER) else None
            if own is None or placed.name in changing:
                continue
            kind = "parameter" if placed.flags & PARAMETER else "buffer"
            if not same_bytes(own, self._view(placed)):
                raise Wrong("hack_suspected", f"{kind} {placed.name} was modified in forward")

    def _accept(self, placed: Placed, result: Tensor) -> None:
        if type(result) not in (Tensor, nn.Parameter):
            raise Wrong("hack_suspected", f"{placed.name} is a {type(result).__name__}, not a plain tensor")
        if tuple(result.shape) != placed.shape:
            raise Wrong("shape", f"{placed.name} has shape {tuple(result.shape)}, not {placed.shape}")
        if result.dtype != _DTYPES[placed.dtype]:
            raise Wrong("dtype", f"{placed.name} is {result.dtype}, not {_DTYPES[placed.dtype]}")
        if result.device.type != self.device.type or result.layout is not torch.strided:
            raise Wrong("launch_error", f"{placed.name} is on {result.device} in {result.layout} layout")

    def _changing(self, call: Call) -> tuple[list[Tensor], list[Tensor]]:
        """The module's buffers that the reference changes, and the values that they have before the call."""
        names = {placed.name for placed in call.outs if placed.flags & BUFFER} & self._state.keys()
        given = [placed for placed in call.ins if placed.name in names]
        return [self._state[placed.name] for placed in given], [self._view(placed) for placed in given]


def require_own(changed: Callable[[], str]) -> None:
    """Raise when the runner is not what it was: first of all when a candidate's code has returned."""
    if said := changed():
        raise Wrong("hack_suspected", said)


def _leaves(returned: Any) -> list[Tensor]:
    """The tensors of a result in order; anything else in it is refused."""
    if isinstance(returned, Tensor):
        return [returned]
    if isinstance(returned, (tuple, list)):
        return [leaf for item in returned for leaf in _leaves(item)]
    raise Wrong("hack_suspected", f"forward returns a {type(returned).__name__}, not a tensor")
