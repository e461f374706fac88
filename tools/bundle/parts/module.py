"""The reference's weights without the reference: the third part of every ``model_new.py``.

Copied into bundles like `loader` and `replay`, whose names it uses.
"""

import hashlib
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import nn

from stitch_tui.tools.bundle.parts.loader import (
    StitchBinding,
    StitchError,
    StitchKernel,
    StitchLibrary,
    StitchScratch,
    stitch_build,
    stitch_processes,
    stitch_stream,
    stitch_unpack,
    stitch_version,
)
from stitch_tui.tools.bundle.parts.replay import StitchReplay

# ------------------------------------------------------------------------------------------------
# Weights, checks and the choice of device: the same text in every bundle.


def stitch_reference(path: Path) -> Any:
    """The reference's module, from the file beside this one."""
    if not path.exists():
        raise StitchError(f"{path} is missing: model_new.py takes its initial weights from it")
    name = f"stitch_reference_{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def stitch_adopt(target: nn.Module, source: nn.Module, seen: dict[nn.Module, nn.Module]) -> None:
    """Give `target` the parameters, buffers and names of `source`, below bare modules: no forward."""
    seen[source] = target
    for name, parameter in source._parameters.items():
        target.register_parameter(name, parameter)
    for name, buffer in source._buffers.items():
        target.register_buffer(name, buffer, persistent=name not in source._non_persistent_buffers_set)
    for name, child in source._modules.items():
        if child is not None and child not in seen:
            stitch_adopt(nn.Module(), child, seen)
        target.add_module(name, None if child is None else seen[child])


def stitch_attribute(module: nn.Module, path: str) -> torch.Tensor:
    """A tensor that the reference keeps outside of its parameters and buffers."""
    value: Any = module
    for part in path.split("."):
        value = getattr(value, part, None)
    if not isinstance(value, torch.Tensor):
        raise StitchError(f"the reference has no tensor {path}")
    return value.detach()


class StitchProgram(NamedTuple):
    """What the program was verified for."""

    mode: str  # train or eval
    files: Path | dict[str, str]  # the kernels' folder, or their texts by file name
    inputs: dict[str, tuple[tuple[int, ...], torch.dtype]]
    weights: dict[str, tuple[tuple[int, ...], torch.dtype]]
    constants: dict[str, Any]  # name -> list and dtype; None: an attribute of the reference
    kernels: tuple[StitchKernel, ...]
    arena_bytes: int  # of the intermediates
    changing: tuple[str, ...] = ()  # buffers that a call changes
    random: bool = False  # some operator draws from the generator: such a program is not replayed


class StitchRuntime:
    """What a ModelNew has beside its weights: constants, and the kernels on each device it was used on."""

    def __init__(self, program: StitchProgram, constants: dict[str, torch.Tensor]) -> None:
        self.program, self.constants = program, constants
        # By the device's index, None for the CPU, the last two by stream too.
        self.bindings: dict[int | None, dict[str, StitchBinding]] = {}
        self.scratch: dict[tuple[int | None, int], StitchScratch] = {}
        self.replays: dict[tuple[int | None, int], StitchReplay] = {}
        self.places: list[tuple[str, dict[str, Any], str]] = []
        self.checked: Any = None
        inputs = [spec for kernel in program.kernels for spec in kernel.inputs]
        self.fixed = sorted({spec.name for spec in inputs if spec.fixed})

    def __reduce__(self) -> Any:
        """Copies and pickles load the kernels again: libraries and device memory do not travel."""
        return StitchRuntime, (self.program, self.constants)

    def call(self, model: nn.Module, inputs: dict[str, Any], steps: Callable[..., Any]) -> Any:
        """Run the program: ``steps(weights by name, how to call kernels, device, *inputs)``, or its graph."""
        named, device = self.check(model, inputs)
        bound, tensors, stream = self.bound(named), list(inputs.values()), stitch_stream(device)

        def run(tensors: list[torch.Tensor], scratch: StitchScratch | None = None) -> Any:
            caller = self.caller(device, scratch or self.scratch_of(device, stream), bound)
            return steps(named, caller, device, *tensors)

        if device.type != "cuda" or self.program.random or torch.cuda.is_current_stream_capturing():
            return run(tensors)
        if (replay := self.replays.get((device.index, stream))) is None:
            replay = self.replays[device.index, stream] = StitchReplay(device, self.program.arena_bytes)
        changing = [named[name] for name in self.program.changing]
        return replay((self.checked, bound), run, tensors, changing)

    def enter(self, model: nn.Module, inputs: dict[str, Any]) -> tuple[dict[str, torch.Tensor], Any, Any]:
        """For a program that launches its steps itself: weights by name, how to call kernels, the device."""
        named, device = self.check(model, inputs)
        scratch = self.scratch_of(device, stitch_stream(device))
        return named, self.caller(device, scratch, self.bound(named)), device

    def bound(self, named: dict[str, torch.Tensor]) -> list[tuple[int, int]]:
        """Address and version of each weight that kernels are bound to."""
        return [(named[name].data_ptr(), stitch_version(named[name])) for name in self.fixed]

    def check(self, model: nn.Module, inputs: dict[str, Any]) -> tuple[dict[str, torch.Tensor], torch.device]:
        """Check a call against what was verified: the weights by name, and the device."""
        mode = self.program.mode
        if model.training != (mode == "train"):
            raise StitchError(
                f"verified in {mode} mode only: call .{'train' if mode == 'train' else 'eval'}()"
            )
        weights = {name: owner[key] for name, owner, key in self.weights(model)}
        tensors = (t for t in (*inputs.values(), *weights.values()) if isinstance(t, torch.Tensor))
        first = next(tensors, None)
        device = torch.device("cpu") if first is None else first.device
        for name, spec in self.program.inputs.items():
            stitch_require(name, inputs.get(name), spec, device)
        # Memory that was fit for the weights a call ago still is: models have many weights.
        memory = [device, *[t.data_ptr() for t in weights.values() if t is not None]]
        if memory != self.checked:
            for name, spec in self.program.weights.items():
                stitch_require(name, weights.get(name), spec, device)
            self.checked = memory
            self.constants = {name: constant.to(device) for name, constant in self.constants.items()}
        return (weights | self.constants if self.constants else weights), device

    def weights(self, model: nn.Module) -> list[tuple[str, dict[str, Any], str]]:
        """Name of each weight, the dictionary that holds it, its key there (torch's own walk is slow)."""
        if not self.places:
            for path, module in model.named_modules(remove_duplicate=False):
                for owner in (module._parameters, module._buffers):
                    self.places += [(f"{path}.{key}" if path else key, owner, key) for key in owner]
        return self.places

    def scratch_of(self, device: torch.device, stream: int) -> StitchScratch:
        """The memory that calls on a stream share."""
        if (scratch := self.scratch.get((device.index, stream))) is None:
            scratch = StitchScratch(device, stream, self.program.arena_bytes)
            self.scratch[device.index, stream] = scratch
        return scratch

    def caller(self, device: torch.device, scratch: StitchScratch, weights: list[tuple[int, int]]) -> Any:
        """The function that the program calls its kernels with: ``kernel(id, *inputs)``.

        `weights` are addresses and versions of those that kernels were bound to.
        """
        if (bindings := self.bindings.get(device.index)) is None:
            bindings = self.bindings[device.index] = self.load(device)
        scratch.see(weights)

        def kernel(name: str, *tensors: torch.Tensor) -> list[torch.Tensor]:
            return bindings[name](scratch, *tensors)

        return kernel

    def load(self, device: torch.device) -> dict[str, StitchBinding]:
        """The kernels for a device: compiled by nvcc, or on a CPU the processes that stitch names."""
        kernels, backends = self.program.kernels, []
        if kernels and device.type == "cpu" and "STITCH_KERNELS" in os.environ:
            backends = stitch_processes(kernels)
        elif kernels and device.type == "cuda":
            files = self.program.files
            folder = files if isinstance(files, Path) else stitch_unpack(files)
            major, minor = torch.cuda.get_device_capability(device)
            libraries = stitch_build(kernels, folder, f"sm_{major}{minor}{'a' if major >= 9 else ''}")
            pairs = zip(kernels, libraries, strict=True)
            backends = [StitchLibrary(kernel, library, device) for kernel, library in pairs]
        elif kernels and torch.cuda.is_available():
            raise StitchError(f"the kernels need a GPU: move model and inputs from {device} to cuda")
        elif kernels:
            raise StitchError("no GPU here; `stitch verify stitched/model_new.py` runs it on the emulator")
        pairs = zip(kernels, backends, strict=True)
        return {kernel.id: StitchBinding(kernel, backend, device) for kernel, backend in pairs}


def stitch_require(
    name: str, value: Any, spec: tuple[tuple[int, ...], torch.dtype], device: torch.device
) -> None:
    """Raise one clear error unless `value` is the tensor that the program was verified with."""
    shape, dtype = spec
    if not isinstance(value, torch.Tensor):
        raise StitchError(f"{name}: expected a tensor, got {type(value).__name__}")
    if (value.shape, value.dtype, value.device) != (shape, dtype, device):
        got = f"{value.dtype} {tuple(value.shape)} on {value.device}"
        raise StitchError(f"{name}: this program is for {dtype} {shape} on {device}, got {got}")


def stitch_same(name: str, value: Any, verified: Any) -> None:
    """Raise unless an argument that is no tensor has the value that is built into the program."""
    if type(value) is not type(verified) or value != verified:
        raise StitchError(f"{name}: this program is for the value {verified!r}, got {value!r}")


class StitchModule(nn.Module):
    """The reference's parameters, buffers and state_dict; inference only, no gradients."""

    stitch_program: ClassVar[StitchProgram]

    def __init__(self, reference: nn.Module) -> None:
        super().__init__()
        stitch_adopt(self, reference, {})
        self.train(self.stitch_program.mode == "train")
        constants = {
            name: stitch_attribute(reference, name)
            if value is None
            else torch.tensor(value[0], dtype=value[1])
            for name, value in self.stitch_program.constants.items()
        }
        self._stitch = StitchRuntime(self.stitch_program, constants)

    def invalidate(self) -> None:
        """Say that weights were written through ``.data``, which torch does not count: bind is redone."""
        for kernels in self._stitch.bindings.values():
            for binding in kernels.values():
                binding.key = False
        for scratch in self._stitch.scratch.values():
            scratch.see(None)
        for replay in self._stitch.replays.values():
            replay.key = None
