"""The user's module, ready to run: construct it, draw inputs, run forward without lasting effects."""

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .construction import Options, construct, describe, device_of, seed_everything
from .encoding import Unencodable, encode_spec
from .faults import Fault, foreign
from .loading import Loaded, load
from .template import tensor_leaves

__all__ = ["Options", "Outcome", "Reference", "cast", "seed_everything"]

Tensor = torch.Tensor

KEPT_BYTES = 64 << 20
"""Larger inputs are not kept for the next draw with the same seed."""


def places(tensors: Iterable[Tensor]) -> set[int]:
    """Addresses of the memory that tensors lie in; those without elements lie nowhere."""
    full = [tensor for tensor in tensors if tensor.layout is torch.strided and tensor.numel()]
    return {tensor.untyped_storage().data_ptr() for tensor in full}


@dataclass
class Outcome:
    """One forward pass: flattened outputs, all buffers after it, and the names of those that it changed."""

    outputs: list[Tensor]
    buffers: dict[str, Tensor]
    mutated: list[str]
    aliases: bool = False
    """Does an output lie in memory of the arguments, parameters or buffers?"""


@dataclass
class Reference:
    """A constructed module with its input functions.

    Forward passes see copies of the buffers, so that none of them leaves a trace; parameters and
    buffers of `module` may be changed by the checker between calls.
    """

    options: Options
    loaded: Loaded
    module: torch.nn.Module
    notes: list[str] = field(default_factory=list)
    writes_inputs: bool = False
    """Has forward been seen to write into its arguments?  They are copied first, from then on."""
    _drawn: tuple[int, list[Any]] | None = None
    _on_host: set[str] = field(default_factory=set)
    """Input functions that do not run with the GPU as the default device."""

    @classmethod
    def open(cls, options: Options) -> "Reference":
        """Import and construct.

        Raises:
            Fault: for each way in which that can fail.
        """
        device = device_of(options.device)
        loaded = load(options.path, options.name, options.project)
        reference = cls(options, loaded, construct(options, loaded))
        reference.set_flags()
        reference._place(device)
        return reference

    @property
    def device(self) -> torch.device:
        return torch.device(self.options.device)

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Parameters by their first name; a shared one occurs once."""
        return {name: value.detach() for name, value in self.module.named_parameters()}

    @property
    def buffers(self) -> dict[str, Tensor]:
        return dict(self.module.named_buffers())

    def set_flags(self) -> dict[str, Any]:
        """Apply the user's numeric flags and module mode; returns what is in force."""
        torch.set_float32_matmul_precision(self.options.matmul_precision)
        torch.backends.cudnn.allow_tf32 = self.options.allow_tf32_conv
        self.module.train(self.options.mode == "train")
        return {
            "mode": self.options.mode,
            "dtype": self.options.dtype,
            "matmul_precision": torch.get_float32_matmul_precision(),
            "cudnn_allow_tf32": torch.backends.cudnn.allow_tf32,
            "cudnn_benchmark": torch.backends.cudnn.benchmark,
            "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        }

    def draw_inputs(self, seed: int) -> list[Any]:
        """Forward's arguments from ``get_inputs()`` under `seed`: on the device, floats cast.

        Raises:
            Fault: it raises or does not return a list of usable arguments.
        """
        if self._drawn is not None and self._drawn[0] == seed:
            return list(self._drawn[1])
        self._drawn = None
        args: list[Any] = self.call_inputs("get_inputs", seed)
        if sum(leaf.nbytes for leaf in tensor_leaves(args)) <= KEPT_BYTES:
            self._drawn = (seed, args)
        return list(args)

    def call_inputs(self, function: str, seed: int) -> Any:
        """What the user's input function returns under `seed`, placed and cast."""
        where = self.loaded.line_of(getattr(self.loaded, function))
        device = torch.device("cpu") if function in self._on_host else self.device
        with foreign(f"{function}()", self.loaded.located, where=where):
            drawn, at = called_on(device, getattr(self.loaded, function), seed)
        if at != self.device:
            self._on_host.add(function)
        if not isinstance(drawn, (list, tuple)):
            raise Fault(
                "reference",
                f"{function}() returns {describe(drawn)}, not a list",
                where=where,
                advice="return a list of forward's positional arguments",
            )
        with foreign(f"moving the inputs to {self.device}", self.loaded.located, where=where):
            return pytree.tree_map(lambda leaf: self._usable(leaf, function, where), list(drawn))

    def forward(
        self,
        args: Sequence[Any],
        state: Mapping[str, Tensor] | None = None,
        dtype: torch.dtype | None = None,
    ) -> Outcome:
        """Run the module on `args`.

        Args:
            state: values for parameters and buffers by name; missing ones are the module's own.
            dtype: cast all floating state to this first.

        Raises:
            Fault: it raises, or returns something else than tensors.
        """
        given = {**self.parameters, **self.buffers, **(state or {})}
        before = {name: cast(given[name], dtype) for name in self.buffers}
        values = {name: cast(value, dtype) for name, value in given.items()}
        values |= {name: value.clone() for name, value in before.items()}
        leaves = tensor_leaves(args)
        versions = [leaf._version for leaf in leaves]
        if self.writes_inputs:
            args = pytree.tree_map(
                lambda leaf: leaf.clone() if isinstance(leaf, Tensor) else leaf, list(args)
            )
        swapped = {place: values[name] for place, name in self._places()}
        where = self.loaded.line_of(type(self.module).forward)
        with (
            foreign("the reference's forward", self.loaded.located, where=where),
            torch.no_grad(),
            self._unchanged(),
        ):
            returned = torch.func.functional_call(self.module, swapped, tuple(args), tie_weights=False)
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
        if [leaf._version for leaf in leaves] != versions:
            self.writes_inputs, self._drawn = True, None
            self.notes.append("forward writes into its inputs; stitch compares only what it returns")
        after = {name: swapped[place] for place, name in self._places()}
        mutated = [name for name, old in before.items() if not _same(after[name], old)]
        outputs = self._flatten(returned, where)
        aliases = not places(outputs).isdisjoint(places([*tensor_leaves(args), *swapped.values()]))
        return Outcome(outputs, {name: after[name] for name in before}, mutated, aliases)

    def dry_forward(
        self, args: Sequence[Any], stand_in: Callable[[Tensor], Tensor], watch: AbstractContextManager[Any]
    ) -> Any:
        """What forward returns on stand-ins for tensors; nothing is computed and nothing changes.

        Args:
            stand_in: makes one for a parameter or buffer.
            watch: surrounds the run.
        """
        state = {**self.parameters, **self.buffers}
        swapped = {place: stand_in(state[name]) for place, name in self._places()}
        with self._unchanged(), torch.no_grad(), watch:
            return torch.func.functional_call(self.module, swapped, tuple(args), tie_weights=False)

    def argument_names(self, args: Sequence[Any]) -> list[str]:
        """A name for each tensor leaf of `args`, after forward's parameters: ``x``, ``states_0``."""
        positional = [
            name
            for name, parameter in inspect.signature(self.module.forward).parameters.items()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
        names = []
        for position, arg in enumerate(args):
            name = positional[position] if position < len(positional) else f"arg{position}"
            leaves = tensor_leaves([arg])
            whole = isinstance(arg, Tensor)
            names += [name if whole else f"{name}_{index}" for index in range(len(leaves))]
        return names

    def _places(self) -> Iterator[tuple[str, str]]:
        """Every place that holds a parameter or buffer, and the first name of what it holds."""
        first: dict[int, str] = {}
        for path, module in self.module.named_modules():
            for name, value in (*module._parameters.items(), *module._buffers.items()):
                place = f"{path}.{name}" if path else name
                if value is not None:
                    yield place, first.setdefault(id(value), place)

    def _place(self, device: torch.device) -> None:
        """Move and cast all state, keeping the tensors' identity, on which sharing rests."""
        dtype, changed = self.options.torch_dtype, set[str]()
        with foreign(f"moving the module to {device}", self.loaded.located):
            for value in (*self.module.parameters(), *self.module.buffers()):
                if value.is_floating_point() and value.dtype != dtype:
                    changed.add(str(value.dtype).removeprefix("torch."))
                value.data = cast(value.data, dtype).to(device)
            self.module.requires_grad_(False)
        changed.discard("float32" if self.options.dtype != "f32" else "")
        if changed:
            self.notes.append(f"{', '.join(sorted(changed))} parameters or buffers were cast to {dtype}")

    def _usable(self, leaf: Any, function: str, where: str) -> Any:
        if not isinstance(leaf, Tensor):
            if leaf is None or isinstance(leaf, (bool, int, float, str)):
                return leaf
            raise Fault(
                "reference",
                f"{function}() holds {describe(leaf)}",
                where=where,
                advice="arguments are tensors, numbers, strings, None, and lists or dicts of them",
            )
        try:
            encode_spec(leaf)
        except Unencodable as error:
            raise Fault(
                "reference", f"{function}() holds {error}", where=where, why="not supported"
            ) from error
        if leaf.device.type == "meta":
            raise Fault("reference", f"{function}() holds a meta tensor, which has no values", where=where)
        dtype = self.options.torch_dtype
        if leaf.is_floating_point() and leaf.dtype not in (dtype, torch.float32):
            note = f"{leaf.dtype} inputs of {function}() were cast to {dtype}"
            self.notes += [note] if note not in self.notes else []
        return cast(leaf.detach(), dtype).to(self.device)

    def _flatten(self, returned: Any, where: str) -> list[Tensor]:
        advice = "return a tensor, or a tuple or list of tensors"
        if isinstance(returned, Tensor):
            leaves = [returned]
        elif isinstance(returned, (tuple, list)):
            leaves = [item for part in returned for item in self._flatten(part, where)]
        else:
            raise Fault("reference", f"forward returns {describe(returned)}", where=where, advice=advice)
        if not leaves:
            raise Fault("reference", "forward returns no tensor", where=where, advice=advice)
        for leaf in leaves:
            if leaf.layout is not torch.strided or leaf.is_complex():
                raise Fault(
                    "reference", f"forward returns {describe(leaf)}", where=where, why="not supported"
                )
        return leaves

    @contextlib.contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Restore plain attributes that forward assigns or writes into (``self.hidden = ...``)."""
        kept = [(module, dict(vars(module))) for module in self.module.modules()]
        tensors = [
            (value, value._version, value.clone())
            for _, attributes in kept
            for value in attributes.values()
            if isinstance(value, Tensor)
        ]
        try:
            yield
        finally:
            for value, version, copy in tensors:
                if value._version != version:
                    value.copy_(copy)
            for module, attributes in kept:
                if not type(module).__module__.startswith("torch.nn"):
                    self._note_state(attributes, vars(module))
                vars(module).clear()
                vars(module).update(attributes)

    def _note_state(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        changed = [name for name, value in after.items() if before.get(name) is not value]
        note = f"forward changes self.{', self.'.join(changed)}: every call starts from the first state"
        if changed and note not in self.notes:
            self.notes.append(note)


def called_on(device: torch.device, function: Callable[[], Any], seed: int) -> tuple[Any, torch.device]:
    """`function()` under `seed` with its tensors made on `device`, or where it does not run so, on the CPU.

    A GPU draws in microseconds what the CPU takes a tenth of a second for.

    Returns:
        What the function returns, and the default device that it ran with.
    """
    if device.type != "cpu":
        seed_everything(seed)
        with contextlib.suppress(Exception), device:
            return function(), device
    seed_everything(seed)
    return function(), torch.device("cpu")


def cast(tensor: Tensor, dtype: torch.dtype | None) -> Tensor:
    """`tensor` in `dtype` when both are floating; integers and booleans are never cast."""
    return tensor.to(dtype) if dtype is not None and tensor.is_floating_point() else tensor


def _same(one: Tensor, other: Tensor) -> bool:
    """Equal in every element, NaN equal to NaN.  (Versions do not tell: batch_norm leaves them alone.)"""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(((one == other) | ((one != one) & (other != other))).all())
