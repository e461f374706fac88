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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any

import torch
from torch.utils import _python_dispatch

FLAGS: Mapping[str, Callable[[], Any]] = {
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
    "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
    "autocast": torch.is_autocast_enabled,
}
"""Global state of torch that changes how fast or how exact other code is."""
_CATCHABLE = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
OPERATORS = ("copy_", "fill_.Scalar", "zero_", "clone", "equal", "eq.Tensor", "_foreach_copy_", "_to_copy")
"""What the runner itself does with tensors."""
WATCHED: Mapping[str, Callable[[], Any]] = {
    "modes that see every call of torch": lambda: _function_modes(),
    "modes that see every operator": lambda: len(_python_dispatch._get_current_dispatch_mode_stack()),
    "torch's own operators": lambda: [line for name in OPERATORS for line in _kernels(name)],
    "hooks on all modules": lambda: [len(found) for found in _module_hooks()],
    "handlers of signals": lambda: [signal.getsignal(number) for number in _CATCHABLE],
    "timers": lambda: [signal.getitimer(which)[1] for which in _TIMERS],
    "what sees every line or call": lambda: [sys.gettrace(), sys.getprofile()],
    "what garbage collection calls": lambda: list(map(id, gc.callbacks)),
}
"""Ways by which code runs while other code believes to run alone."""
FUNCTIONS = (
    (torch, "allclose isclose equal empty zeros rand randn manual_seed compile _foreach_copy_"),
    (torch.Tensor, "copy_ to view reshape clone fill_ zero_ contiguous numel __eq__"),
    (torch.cuda, "Event synchronize Stream current_stream"),
    (torch.cuda.Event, "record elapsed_time synchronize"),
    (torch.testing, "assert_close"),
    (time, "time perf_counter perf_counter_ns monotonic monotonic_ns"),
    (random, "random seed"),
    (builtins, "open print abs max min len"),
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


class Intact:
    """The code of some modules, and of one object, as it was when this was made."""

    def __init__(self, modules: Iterable[ModuleType], runner: object) -> None:
        self._runner = runner
        self._known = [
            (owner, name, value, code) for module in modules for owner, name, value, code in _code(module)
        ]

    def changes(self) -> str:
        """Which function is no longer what it was, a sentence; empty when all are."""
        for owner, name, value, code in self._known:
            now = vars(owner).get(name)
            if now is not value or (isinstance(now, FunctionType) and now.__code__ is not code):
                return f"the runner's own {name} was replaced"
        shadows = vars(self._runner).keys() & vars(type(self._runner)).keys()
        return f"the runner's own {min(shadows)} was replaced" if shadows else ""


def _code(module: ModuleType) -> Iterator[tuple[Any, str, Any, Any]]:
    """Functions and classes of a module and methods of its classes: owner, name, value, code."""
    owners = [module, *(value for value in vars(module).values() if isinstance(value, type))]
    for owner in owners:
        own = owner is module or owner.__module__ == module.__name__
        for name, value in list(vars(owner).items()) if own else ():
            if callable(value):
                yield owner, name, value, getattr(value, "__code__", None)


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
