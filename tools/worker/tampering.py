"""What a Python candidate must leave as it was: flags, clocks, torch's functions, threads, our own code."""

import _thread
import builtins
import gc
import random
import signal
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType, FunctionType, MappingProxyType, ModuleType
from typing import Any

import torch
from torch import nn
from torch.utils import _python_dispatch

FLAGS: Mapping[str, Callable[[], Any]] = MappingProxyType(
    {
        "torch.backends.cuda.matmul.allow_tf32": lambda: torch.backends.cuda.matmul.allow_tf32,
        "torch.backends.cudnn.allow_tf32": lambda: torch.backends.cudnn.allow_tf32,
        "torch.backends.cudnn.benchmark": lambda: torch.backends.cudnn.benchmark,
        "torch.backends.cudnn.enabled": lambda: torch.backends.cudnn.enabled,
        "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction": lambda: (
            torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
        ),
        "the matmul precision": torch.get_float32_matmul_precision,
        "the default dtype": torch.get_default_dtype,
        "the default device": torch.get_default_device,
        "the current stream": lambda: _stream(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
        "autocast": torch.is_autocast_enabled,
    }
)
"""Global state of torch that changes how fast or how exact other code is, or when its work is seen."""
_CATCHABLE = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
OPERATORS = ("copy_", "fill_.Scalar", "zero_", "clone", "equal", "eq.Tensor", "_foreach_copy_", "_to_copy")
"""What the runner itself does with tensors."""
WATCHED: Mapping[str, Callable[[], Any]] = MappingProxyType(
    {
        "modes that see every call of torch": lambda: _function_modes(),
        "modes that see every operator": lambda: len(_python_dispatch._get_current_dispatch_mode_stack()),
        "torch's own operators": lambda: [line for name in OPERATORS for line in _kernels(name)],
        "hooks on all modules": lambda: [len(found) for found in _module_hooks()],
        "handlers of signals": lambda: [signal.getsignal(number) for number in _CATCHABLE],
        "timers": lambda: [signal.getitimer(which)[1] for which in _TIMERS],
        "what sees every line or call": lambda: [sys.gettrace(), sys.getprofile()],
        "what garbage collection calls": lambda: list(map(id, gc.callbacks)),
    }
)
"""Ways by which code runs while other code believes to run alone."""
FUNCTIONS = (
    (torch, "allclose isclose equal empty zeros rand randn manual_seed compile _foreach_copy_"),
    (torch.Tensor, "copy_ to view reshape clone fill_ zero_ contiguous numel __eq__ __getitem__ data_ptr"),
    (torch.Tensor, "untyped_storage element_size is_contiguous"),
    (nn.Module, "named_parameters named_buffers __setattr__ __getattr__"),
    (torch.cuda, "Event synchronize Stream current_stream"),
    (torch.cuda.Event, "record elapsed_time synchronize"),
    (torch.testing, "assert_close"),
    (time, "time perf_counter perf_counter_ns monotonic monotonic_ns"),
    (random, "random seed"),
)
"""What others measure and compare with: (module or class, names)."""
_STDLIB = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib")} | {"<frozen"})
_BACKENDS = ("CPU:", "CUDA:", "AutogradCPU:", "AutogradCUDA:")


class Untouched:
    """A snapshot, to be compared with what there is later."""

    def __init__(self) -> None:
        self._flags = {name: read() for name, read in FLAGS.items()}
        self._watched = {name: read() for name, read in WATCHED.items()}
        self._functions = {
            (owner, name): getattr(owner, name) for owner, names in FUNCTIONS for name in names.split()
        }
        self._threads, self._unnamed = set(sys._current_frames()), _unnamed_threads()

    def changes(self) -> str:
        """What is no longer as it was, a sentence; empty when all is."""
        for name, read in FLAGS.items():
            if (now := read()) != self._flags[name]:
                return f"{name} was changed from {self._flags[name]} to {now}"
        for (owner, name), before in self._functions.items():
            if (now := getattr(owner, name, None)) is not before and not _is_torchs(now):
                return f"{getattr(owner, '__name__', owner)}.{name} was replaced"
        for name, read in WATCHED.items():
            if read() != self._watched[name]:
                return f"{name} were changed"
        frames = sys._current_frames()
        if left := [ident for ident in frames.keys() - self._threads if not _is_a_packages(frames[ident])]:
            known = {thread.ident: thread.name for thread in threading.enumerate()}
            names = ", ".join(sorted(known.get(ident, "unnamed") for ident in left))
            return f"{len(left)} threads go on: {names[:100]}"
        return "threads without a name go on" if _unnamed_threads() > self._unnamed else ""


def intact(modules: Iterable[ModuleType], runner: object) -> Callable[[], str]:
    """Which name of those modules and their classes, or of Python's own, is no longer what it is now.

    The function that is returned says so in a sentence, empty when all are; it looks up no name by itself, so
    that it can be called as soon as a candidate has returned.
    """
    known = [
        (owner, {name: (value, _code(value)) for name, value in owner.items() if not _is_volatile(name)})
        for module in modules
        for owner in _owners(module)
    ]
    pythons = [(name, value) for name, value in vars(builtins).items() if name != "_"]
    own, python, function = vars(runner), vars(builtins), FunctionType
    methods = {name for base in type(runner).__mro__[:-1] for name in vars(base)}
    is_volatile, shown, kind = _is_volatile, min, type
    absent = object()

    def changes() -> str:
        for name, value in pythons:
            if python.get(name, absent) is not value:
                return f"builtins.{name} was replaced"
        for owner, values in known:
            for name, (value, code) in values.items():
                now = owner.get(name, absent)
                if now is not value or (kind(now) is function and (now.__code__, now.__defaults__) != code):
                    return f"the runner's own {name} was replaced"
            if added := [name for name in owner if name not in values and not is_volatile(name)]:
                return f"the runner's own {shown(added)} was replaced"
        shadows = own.keys() & methods
        return f"the runner's own {shown(shadows)} was replaced" if shadows else ""

    return changes


def _owners(module: ModuleType) -> list[Mapping[str, Any]]:
    """The names of a module, and those of the classes that it defines."""
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    return [vars(module), *(vars(own) for own in classes if own.__module__ == module.__name__)]


def _code(value: Any) -> tuple[Any, Any] | None:
    return (value.__code__, value.__defaults__) if type(value) is FunctionType else None


def _is_volatile(name: str) -> bool:
    """Python itself puts it there while code runs."""
    return name in ("__warningregistry__", "__builtins__") or name.startswith("__annot")


def _stream() -> int:
    """The stream that work of torch's goes to, as CUDA numbers it."""
    started: Callable[[], bool] = torch.cuda.is_initialized
    return torch.cuda.current_stream().cuda_stream if started() else 0


def _module_hooks() -> list[Mapping[Any, Any]]:
    """Of every kind that torch has."""
    own = vars(torch.nn.modules.module)
    return [own[name] for name in sorted(own) if name.startswith("_global_") and isinstance(own[name], dict)]


def _function_modes() -> int:
    stack: Callable[[], Sequence[Any]] = torch.overrides._get_current_function_mode_stack
    return len(stack())


def _unnamed_threads() -> int:
    """Threads past `threading`, such as those that run no Python."""
    main = threading.main_thread()
    return _thread._count() - sum(thread is not main for thread in threading.enumerate())


def _is_torchs(function: Any) -> bool:
    """Torch puts wrappers around some of its own functions when torch.compile is first used."""
    code = getattr(function, "__code__", None)
    return code is not None and Path(code.co_filename).is_relative_to(Path(torch.__file__).parent)


def _kernels(operator: str) -> list[str]:
    """What torch runs for an operator, a line for each backend that a candidate can be on."""
    table = torch._C._dispatch_dump_table(f"aten::{operator}")
    return [line for line in table.splitlines() if line.startswith(_BACKENDS)]


def _is_a_packages(frame: FrameType | None) -> bool:
    """Does a thread run what an installed package started for itself, as torch.compile does?"""
    files = []
    while frame is not None:
        files.append(frame.f_code.co_filename)
        frame = frame.f_back
    outermost = (file for file in reversed(files) if "-packages" in file or not file.startswith(_STDLIB))
    return "-packages" in next(outermost, "")
