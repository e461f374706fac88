"""A bundle's kernels as processes on the emulator: what ``model_new.py`` needs where there is no GPU."""

import json
from collections.abc import Sequence
from pathlib import Path

from stitch_tui.tools import worker
from stitch_tui.tools.bundle.reading import BundledKernel
from stitch_tui.tools.emulator import Emulator, FrontEnd, Mode
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.verdict import Build

HOST = Path(worker.__file__).parent / "kernel_host.py"
"""Loaded by ``model_new.py`` under the user's interpreter."""


async def emulated(
    kernels: Sequence[BundledKernel],
    emulator: Emulator,
    folder: Path,
    *,
    mode: Mode = Mode.CHECK,
    front_end: FrontEnd | str = "auto",
    timeout: float = 120.0,
) -> dict[str, str]:
    """Build each kernel and return the environment in which ``model_new.py`` runs them on a CPU.

    Args:
        folder: takes the sources and the table of processes; lives as long as they are used.
        timeout: seconds for each build.

    Raises:
        UsageError: a kernel does not build for the emulator; with its first diagnostic.
    """
    table = {}
    for kernel in kernels:
        if kernel.source:
            path = folder / kernel.file
            path.write_text(kernel.source, encoding="utf-8")
            build = await emulator.build(path, mode, front_end=front_end, timeout=timeout)
            if not build.ok:
                raise _unbuilt(kernel, build)
            table[kernel.file] = {"argv": emulator.runner_argv(build), "env": emulator.runner_env()}
    names = folder / "kernels.json"
    names.write_text(json.dumps(table), encoding="utf-8")
    return {"STITCH_KERNELS": str(names), "STITCH_HOST": str(HOST)}


def _unbuilt(kernel: BundledKernel, build: Build) -> UsageError:
    first = build.diagnostics[0] if build.diagnostics else None
    return UsageError(
        "the kernel does not build for the emulator",
        where=f"kernels/{kernel.file}:{first.line}" if first else f"kernels/{kernel.file}",
        why=first.message if first else build.log.strip()[-300:],
    )
