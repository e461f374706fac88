"""How a candidate's process is started: the ``runner`` of the judge's methods ``check`` and ``time``."""

from collections.abc import Mapping
from pathlib import Path

from stitch_tui.tools.bench import Bench, Json
from stitch_tui.tools.emulator import Emulator
from stitch_tui.tools.judge_start import BOOT
from stitch_tui.tools.verdict import Build

COMPILING = {
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}
"""torch.compile within a runner's limits: torch's precompiled headers are larger than any file that a
candidate may write, and its pool of compiling processes outlives the call that started it."""


def emulated(emulator: Emulator, build: Build, *, order: int, deadline_s: float) -> Json:
    """An executable of the emulator's; `order` of its threads as ``Emulator.runner_env`` takes it."""
    return {
        "argv": emulator.runner_argv(build),
        "env": emulator.runner_env(order=order),
        "deadline_s": deadline_s,
    }


def on_gpu(bench: Bench, build: Build) -> Json:
    """A shared library from nvcc in a torch-free Python."""
    return {
        "argv": [bench.python, str(BOOT), "runner", "cuda"],
        "load": build.artifact,
        "device": "cuda",
        "deadline_s": bench.deadline_s,
    }


def module(bench: Bench, path: Path, environment: Mapping[str, str], cache: Path) -> Json:
    """A Python file with ``ModelNew``.

    Args:
        cache: folder for what it builds, kept from one of its runners to the next: no other candidate's.
    """
    device = "cuda" if bench.cuda else "cpu"
    return {
        "argv": [bench.python, str(BOOT), "module_runner", device],
        "load": str(path.resolve()),
        "env": COMPILING | dict(environment),
        "device": device,
        "module": True,
        "cache": str(cache),
        "deadline_s": 4 * bench.deadline_s,
    }
