"""How a candidate's process is started, and the strictest confinement under which it works here."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from . import abi
from .arena import Arena
from .candidate_fault import CandidateFault
from .channel import Channel
from .isolation import Isolation, for_runner, libraries

BOOT = Path(__file__).parent / "boot.py"
_CUDA_STARTS: dict[Isolation, bool] = {}


@dataclass(frozen=True)
class Launch:
    """How a runner is started: the ``runner`` of the judge's methods ``check`` and ``time``."""

    argv: tuple[str, ...]
    load: str = ""
    """Library or module that it loads; empty when the candidate is linked in."""
    env: Mapping[str, str] = field(default_factory=dict)
    device: str = "cpu"
    """Where the arena lies: ``cuda`` or host memory."""
    isolate: bool = True
    """Confine the process as far as the kernel and its kind allow."""
    module: bool = False
    """A Python module with ``ModelNew``, not a C library."""
    imports: tuple[str, ...] = ()
    """Folders of the project that such a module may import from."""
    cache: str = ""
    """Folder for what the candidate builds, of this candidate alone: its later runners find it there.  Empty:
    each builds for itself."""
    deadline_s: float = 30.0

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> "Launch":
        """From JSON, all but ``argv`` optional."""
        return cls(**{**params, "argv": tuple(params["argv"])})

    @property
    def environment(self) -> dict[str, str]:
        """`env`, and `imports` where the module's runner looks for them."""
        return {**self.env, abi.IMPORTS: os.pathsep.join(self.imports)} if self.imports else dict(self.env)

    def on(self, device: torch.device) -> "Launch":
        """This launch on the judge's own device; its process sees that GPU alone, as number 0."""
        if self.device == "cpu" or device.type != "cuda":
            return self
        index = device.index or 0
        seen = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        name = seen[index] if index < len(seen) and seen[index] else str(index)
        return replace(self, device=str(device), env={**self.env, "CUDA_VISIBLE_DEVICES": name})


def confinement(launch: Launch, device: torch.device, arena: Arena) -> tuple[Isolation, Isolation | None]:
    """The strictest for such a runner, and the strictest that works: CUDA must start under it, tried once."""
    wanted = for_runner(module=launch.module, cuda=device.type == "cuda")
    if launch.module and "STITCH_KERNELS" not in launch.env:
        wanted = replace(wanted, readable=libraries())
    if device.type != "cuda":
        return _reading(launch, wanted), _reading(launch, wanted)
    # Tried without the candidate's own folders: the answer is the same for all candidates.
    working = next((one for one in wanted.weaker() if _cuda_starts(one, launch, arena)), None)
    return _reading(launch, wanted), _reading(launch, working) if working else None


def _reading(launch: Launch, isolation: Isolation) -> Isolation:
    """With what the candidate itself may read, where not everybody may read everything."""
    own = (os.path.realpath(Path(launch.load).parent), *launch.imports)
    return replace(isolation, readable=(*isolation.readable, *own)) if isolation.readable else isolation


def _cuda_starts(isolation: Isolation, launch: Launch, arena: Arena) -> bool:
    """Does a runner without a candidate start, and map the arena, when confined like this?"""
    if isolation not in _CUDA_STARTS:
        try:
            Channel(
                [sys.executable, str(BOOT), "runner", "cuda"],
                arena=arena.announce(),
                load="libc.so.6",
                env=launch.env,
                descriptors=arena.descriptors,
                isolation=isolation,
            ).close()
            _CUDA_STARTS[isolation] = True
        except CandidateFault:
            _CUDA_STARTS[isolation] = False
    return _CUDA_STARTS[isolation]
