"""How each kind of candidate is run: the ``runner`` of the judge's methods ``check`` and ``time``."""

from collections.abc import Mapping
from pathlib import Path

from stitch_tui.tools.bench import Bench, Json
from stitch_tui.tools.verdict import Build

BOOT = Path(__file__).parent / "worker" / "boot.py"
_SLOWER = 4
"""A module's call may compile kernels first."""


def cuda_runner(bench: Bench, build: Build) -> Json:
    """For a library that nvcc built."""
    return {
        "argv": [bench.python, str(BOOT), "runner", "cuda"],
        "load": build.artifact,
        "device": "cuda",
        "deadline_s": bench.deadline_s,
    }


def module_runner(bench: Bench, module: Path, environment: Mapping[str, str]) -> Json:
    """For a Python module with ``ModelNew``, on the GPU if there is one."""
    device = "cuda" if bench.cuda else "cpu"
    return {
        "argv": [bench.python, str(BOOT), "module_runner", device],
        "load": str(module.resolve()),
        "env": dict(environment),
        "device": device,
        "module": True,
        "deadline_s": _SLOWER * bench.deadline_s,
    }


def emulator_runner(bench: Bench, build: Build, order: int) -> Json:
    """For an executable of the emulator's; `order` of a block's threads as in `Emulator.runner_env`."""
    assert bench.emulator
    return {
        "argv": bench.emulator.runner_argv(build),
        "env": bench.emulator.runner_env(order=order),
        "deadline_s": bench.deadline_s,
    }
