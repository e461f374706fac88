"""A bundle's kernels as processes on the emulator: what ``model_new.py`` needs where there is no GPU."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from stitch_tui.tools import worker
from stitch_tui.tools.emulator import Emulator, FrontEnd, Mode
from stitch_tui.tools.verdict import Build

HOST = Path(worker.__file__).parent / "kernel_host.py"
"""Loaded by ``model_new.py`` under the user's interpreter."""


class Emulated(NamedTuple):
    """Kernels built for the emulator."""

    environment: dict[str, str]
    """In which ``model_new.py`` runs them on a CPU; empty when one did not build."""
    builds: tuple[Build, ...]
    """In the kernels' order, up to the first that failed."""


async def emulated(
    kernels: Mapping[str, Path],
    emulator: Emulator,
    folder: Path,
    *,
    mode: Mode = Mode.FAST,
    front_end: FrontEnd | str = "auto",
    timeout: float = 120.0,
) -> Emulated:
    """Build each kernel for the emulator and write down how to start it.

    Args:
        kernels: the bundle's ``.cu`` files by file name.
        folder: takes the table of processes; lives as long as they are used.
        timeout: seconds for each build.
    """
    table, builds = {}, []
    for name, source in kernels.items():
        builds.append(await emulator.build(source, mode, front_end=front_end, timeout=timeout))
        if not builds[-1].ok:
            return Emulated({}, tuple(builds))
        table[name] = {"argv": emulator.runner_argv(builds[-1]), "env": emulator.runner_env()}
    names = folder / "kernels.json"
    names.write_text(json.dumps(table), encoding="utf-8")
    return Emulated({"STITCH_KERNELS": str(names), "STITCH_HOST": str(HOST)}, tuple(builds))
