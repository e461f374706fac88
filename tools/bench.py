"""What a verification works with: the judge, the emulator, the GPU."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from stitch_tui.tools.build import build_cuda
from stitch_tui.tools.emulator import Emulator
from stitch_tui.tools.graph import Region
from stitch_tui.tools.lease import Lease
from stitch_tui.tools.toolkit import Toolkit
from stitch_tui.tools.verdict import Build

Json = dict[str, Any]
OnEvent = Callable[[str, Json], None]
CHECK_SECONDS = 1800.0
"""For one call of the judge: the trials of one stage together."""
BUILD_SECONDS = 180.0


def target_of(region: Region) -> Json:
    """A region as the judge's methods take it; a whole program is ``{"kind": "program"}``."""
    return {"kind": "region", "region": region.model_dump(mode="json")}


class JudgeCall(Protocol):
    """What is needed of `judge.Judge`."""

    async def call(
        self, method: str, params: Json | None = None, *, timeout: float, on_event: OnEvent | None = None
    ) -> Any: ...


@dataclass(frozen=True)
class Cuda:
    """The device that candidates are built for and run on."""

    name: str
    """``NVIDIA H200``."""
    arch: str
    """``sm_90``."""
    toolkit: Toolkit
    cache: Path
    """Of builds."""
    uuid: str = ""
    """Of the GPU, to lease it from other stitch processes; empty: not leased."""
    driver: str = ""
    """Its version; empty: not known."""
    profiles: Path | None = None
    """Where reports of profilers are kept; None: nothing is profiled."""

    @property
    def device(self) -> str:
        return f"cuda {self.name} {self.arch}"

    async def build(self, source: Path) -> Build:
        """A candidate's library for this device; errors as for `build_cuda`."""
        return await build_cuda(
            source, arch=self.arch, toolkit=self.toolkit, cache=self.cache, timeout=BUILD_SECONDS
        )


@dataclass(frozen=True)
class Bench:
    """What a verification works with; without `cuda` the emulator judges and verdicts are functional."""

    judge: JudgeCall
    emulator: Emulator | None
    python: str = "python3"
    """The interpreter that has torch: it runs the CUDA and module runners."""
    cuda: Cuda | None = None
    deadline_s: float = 60.0
    """Longest time for one call of a candidate."""
    shapes: str = ""
    """Names the reference's graph with all its shapes: what the geometry of launches follows from."""

    @property
    def device(self) -> str:
        return self.cuda.device if self.cuda else "emulator"

    def gpu(
        self, purpose: str, *, alone: bool = False, on_event: OnEvent | None = None
    ) -> AbstractAsyncContextManager[None]:
        """The right to use the GPU while the context lasts: to time alone, else beside others.

        Args:
            on_event: ``(event, data)``: ``waiting`` with the ``holder``, when it is not had at once.

        Raises:
            EnvironmentFault: when it is entered, and the lease's folder cannot be used.
        """
        if self.cuda is None or not self.cuda.uuid:
            return nullcontext()
        waits = (lambda holder: on_event("waiting", {"holder": holder})) if on_event else None
        lease = Lease(self.cuda.uuid, waits=waits)
        return lease.exclusive(purpose) if alone else lease.shared(purpose)
