"""Does a candidate build for other architectures than the one it was judged on?  Compiled, never run."""

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from stitch_tui.tools.build import build_cuda
from stitch_tui.tools.errors import EnvironmentFault
from stitch_tui.tools.toolkit import Toolkit
from stitch_tui.tools.verdict import Build

BLOCK_SHARED_KIB = {
    "70": 96, "75": 64, "80": 163, "86": 99, "87": 163, "89": 99, "90": 227, "100": 227, "103": 227,
    "110": 227, "120": 99, "121": 99,
}  # fmt: skip
"""Most shared memory of a block.  (CUDA C++ Programming Guide, technical specifications by capability)"""


class Outcome(StrEnum):
    """What is known of a candidate on an architecture."""

    COMPILES = "compiles"
    """It builds; whether it is right and fast there nobody saw."""
    FALLBACK = "needs fallback"
    """It does not build there: that architecture needs another version, or PyTorch."""
    NOT_RUN = "not run"
    """The compiler here cannot build for it."""


class OnArch(BaseModel):
    """One candidate on one architecture."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    arch: str
    """As built: ``sm_90a`` where the source needs it."""
    outcome: Outcome
    reason: str = ""
    registers: int = 0
    """Most that a thread of one of its kernels has."""
    shared_bytes: int = 0
    """Most static shared memory of a block."""
    spill_bytes: int = 0
    """Of all kernels together."""


async def across(
    sources: Sequence[Path], archs: Sequence[str], toolkit: Toolkit, cache: Path
) -> list[OnArch]:
    """Build each source for each architecture.

    Args:
        archs: such as ``sm_80``.

    Raises:
        UsageError: a source cannot be read.
        EnvironmentFault: there is no nvcc.
    """
    toolkit.require_nvcc()
    pairs = [(source, arch) for source in sources for arch in archs]
    return await asyncio.gather(*(_on(source, arch, toolkit, cache) for source, arch in pairs))


async def _on(source: Path, arch: str, toolkit: Toolkit, cache: Path) -> OnArch:
    try:
        build = await build_cuda(source, arch=arch, toolkit=toolkit, cache=cache)
    except EnvironmentFault as fault:
        return OnArch(file=source.name, arch=arch, outcome=Outcome.NOT_RUN, reason=fault.why or fault.what)
    return _judged(source, arch, build)


def _judged(source: Path, arch: str, build: Build) -> OnArch:
    if not build.ok:
        reason = build.diagnostics[0].message.partition("\n")[0] if build.diagnostics else "it does not build"
        return OnArch(file=source.name, arch=arch, outcome=Outcome.FALLBACK, reason=reason)
    return OnArch(
        file=source.name,
        arch=build.arch or arch,
        outcome=Outcome.COMPILES,
        reason=_room(source.read_text(encoding="utf-8", errors="replace"), arch),
        registers=max((k.registers for k in build.kernels), default=0),
        shared_bytes=max((k.shared_bytes for k in build.kernels), default=0),
        spill_bytes=sum(k.spill_bytes for k in build.kernels),
    )


def _room(source: str, arch: str) -> str:
    """How much shared memory a block may ask for there, if the source asks for more than the usual 48 KiB."""
    most = BLOCK_SHARED_KIB.get(arch.removeprefix("sm_").rstrip("af"))
    if "MaxDynamicSharedMemorySize" not in source or most is None:
        return ""
    return f"it sizes shared memory as it runs: a block may have {most} KiB there"
