"""The verification bench of a project: device, judge with the open reference, compilers.

What a session and ``stitch verify`` have in common.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stitch_tui.agents.settings import Settings
from stitch_tui.tools import reference as references
from stitch_tui.tools.build_cache import BuildCache, key_of
from stitch_tui.tools.device_peaks import device_peaks
from stitch_tui.tools.emulator import Emulator
from stitch_tui.tools.errors import EnvironmentFault, ReferenceFault
from stitch_tui.tools.gpu import CudaDevice, Device, EmulatorDevice, choose_device
from stitch_tui.tools.graph import Region
from stitch_tui.tools.judge import Judge, OnEvent
from stitch_tui.tools.paths import cache_dir
from stitch_tui.tools.reference import Exported, ReferenceOptions, ReferenceSummary
from stitch_tui.tools.roofline import Peaks, fastest, peaks_of
from stitch_tui.tools.speed_of_light import least_us
from stitch_tui.tools.toolkit import find_toolkit
from stitch_tui.tools.verification import Bench, Cuda

CACHE_BYTES = 5 << 30
"""Builds that are kept for each device, nvcc's and the emulator's; those used longest ago go first."""


@dataclass(frozen=True)
class OpenBench:
    """A bench whose judge holds the reference."""

    bench: Bench
    judge: Judge
    device: Device
    summary: ReferenceSummary
    exported: Exported
    """The graph at full size."""
    options: dict[str, Any]
    """How the reference is opened, as the judge's method ``open`` takes it."""
    peaks: Peaks | None = None
    """What the device reaches, measured where that worked; None where nothing is known: the emulator."""

    def least_us(self, region: Region) -> float | None:
        """Speed of light of a region on the device; None on the emulator and where nothing bounds it.

        A program may do better than what was measured, and not better than the data sheet too.
        """
        sheet = peaks_of(self.device) if isinstance(self.device, CudaDevice) else None
        return least_us(self.exported.graph, region, fastest(self.peaks, sheet))


@asynccontextmanager
async def open_bench(
    project: Path, settings: Settings, reference: str, on_event: OnEvent | None = None
) -> AsyncIterator[OpenBench]:
    """Choose the device, start the judge and open `reference` in it; the judge ends with the context.

    Raises:
        EnvironmentFault: the device, a compiler or the interpreter is missing.
        ReferenceFault: the reference cannot be used.
    """
    device = choose_device(settings.device)
    python = settings.reference.python or sys.executable
    cuda = await _cuda(device, settings)
    emulator = _emulator(needed=cuda is None)
    for cache in ("builds", "emulator"):
        BuildCache(cache_dir(cache)).prune(CACHE_BYTES)
    async with Judge(python, project, environment=_pinned(device)) as judge:
        options = _options(settings, reference, cuda is not None)
        bench = Bench(judge, emulator, python=python, cuda=cuda)
        async with bench.gpu("opening the reference"):
            summary = await references.open_reference(judge, options, on_event)
            exported = await references.graph(judge)
        peaks = await device_peaks(bench, device, on_event) if isinstance(device, CudaDevice) else None
        yield OpenBench(
            bench=replace(bench, shapes=key_of(exported.graph.model_dump_json())),
            judge=judge,
            device=device,
            summary=summary,
            exported=exported,
            options=references.parameters(options, project),
            peaks=peaks,
        )


class Workbench:
    """A bench that can be given up, with its judge and the GPU, and taken back.

    Args:
        reference: ``file.py``, ``file.py:Class`` or ``pkg.mod:Class``.
        sha256: of the source that it must have; empty: whatever is found first.
    """

    def __init__(self, project: Path, settings: Settings, reference: str, sha256: str = "") -> None:
        self._project, self._settings, self._reference = project, settings, reference
        self._sha256 = sha256
        self._stack = AsyncExitStack()
        self._opened: OpenBench | None = None

    async def opened(self) -> OpenBench:
        """The bench; a judge that was given up or has died is started anew.

        Raises:
            ReferenceFault: the source is not what it was; and as `open_bench`.
        """
        if self._opened is not None and self._opened.judge.alive:
            return self._opened
        await self.release()
        opened = await self._stack.enter_async_context(
            open_bench(self._project, self._settings, self._reference)
        )
        if self._sha256 not in ("", opened.summary.sha256):
            raise ReferenceFault(
                "the reference was changed since this session began",
                where=opened.summary.path,
                why="verdicts on the old source say nothing of the new one",
                advice="undo the change, or start a new session: stitch --auto",
            )
        self._sha256, self._opened = opened.summary.sha256, opened
        return opened

    async def release(self) -> None:
        """End the judge and give up the GPU."""
        self._opened = None
        await self._stack.aclose()


async def _cuda(device: Device, settings: Settings) -> Cuda | None:
    if isinstance(device, EmulatorDevice):
        return None
    toolkit = await find_toolkit(settings.reference.python)
    toolkit.require_nvcc()
    return Cuda(
        name=device.name,
        arch=device.arch,
        toolkit=toolkit,
        cache=cache_dir("builds"),
        uuid=device.uuid,
        driver=device.driver,
        profiles=cache_dir("profiles") if settings.device.profile else None,
    )


def _emulator(needed: bool) -> Emulator | None:
    """The emulator; on a GPU it is an extra check, and a machine without a host compiler goes without."""
    if needed:
        return Emulator(cache_dir("emulator"))
    with suppress(EnvironmentFault):
        return Emulator(cache_dir("emulator"))
    return None


def _pinned(device: Device) -> dict[str, str]:
    """The judge and everything it starts see the chosen GPU alone, or none."""
    return {"CUDA_VISIBLE_DEVICES": device.uuid if isinstance(device, CudaDevice) else ""}


def _options(settings: Settings, reference: str, cuda: bool) -> ReferenceOptions:
    shared = settings.reference.model_dump(mode="json", exclude={"path", "python"})
    return ReferenceOptions.model_validate(
        {**shared, "path": reference, "device": "cuda:0" if cuda else "cpu"}
    )
