"""The NVIDIA GPUs of this machine, as the driver's management library (NVML) tells."""

import contextlib
import dataclasses
import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from stitch_tui.tools.errors import EnvironmentFault

NO_GPU = "no NVIDIA GPU is visible here"
_ADVICE = "check nvidia-smi and CUDA_VISIBLE_DEVICES, or set device.kind to auto or emulator"


@dataclass(frozen=True)
class CudaDevice:
    """One GPU."""

    index: int
    """Among the visible devices, in PCI order."""
    uuid: str
    """Workers are pinned to it by CUDA_VISIBLE_DEVICES."""
    name: str
    capability: tuple[int, int]
    memory_bytes: int
    """0 where host and device share one memory and the driver does not say."""
    driver: str
    cuda: tuple[int, int]
    """The newest CUDA that the driver runs."""
    memory_clock_mhz: int = 0
    """Highest memory clock; 0 where the driver does not say, as the three below."""
    bus_bits: int = 0
    sm_clock_mhz: int = 0
    """Highest clock of the multiprocessors."""
    cores: int = 0
    target: str = ""
    """Architecture to build for, where the settings name one."""

    @property
    def arch(self) -> str:
        """``sm_90``: the device's own unless the settings name another."""
        return self.target or f"sm_{self.capability[0]}{self.capability[1]}"

    def __str__(self) -> str:
        """What a verdict and a commit call it: ``cuda NVIDIA H200 sm_90``."""
        return f"cuda {self.name} {self.arch}"


@dataclass(frozen=True)
class EmulatorDevice:
    """The CPU: verdicts are functional, nothing is timed."""

    reason: str
    """Why it was chosen, for a person."""
    arch: str = "sm_90"
    """Target whose PTX is emulated."""

    def __str__(self) -> str:
        return "emulator"


Device = CudaDevice | EmulatorDevice


class DeviceChoice(Protocol):
    """The ``[device]`` settings."""

    @property
    def kind(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def arch(self) -> str: ...


def devices(environ: Mapping[str, str] = os.environ) -> tuple[CudaDevice, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves; empty without a driver."""
    with nvml_session() as nvml:
        if nvml is None:
            return ()
        driver, cuda = str(nvml.nvmlSystemGetDriverVersion()), int(nvml.nvmlSystemGetCudaDriverVersion())
        found = []
        for number in range(nvml.nvmlDeviceGetCount()):
            with contextlib.suppress(nvml.NVMLError):  # one that fell off the bus hides no other
                handle = nvml.nvmlDeviceGetHandleByIndex(number)
                found.append(_device(nvml, handle, number, driver, (cuda // 1000, cuda % 1000 // 10)))
    return visible(found, environ.get("CUDA_VISIBLE_DEVICES"))


def visible(found: Sequence[CudaDevice], mask: str | None) -> tuple[CudaDevice, ...]:
    """The devices that a CUDA_VISIBLE_DEVICES value leaves, in its order, renumbered.

    Entries are indices in PCI order or beginnings of UUIDs; the first that fits nothing ends the list, as in
    the CUDA driver.
    """
    if mask is None:
        return tuple(found)
    chosen: list[CudaDevice] = []
    for entry in filter(None, (part.strip() for part in mask.split(","))):
        matches = [d for d in found if entry == str(d.index) or d.uuid.startswith(entry)]
        if len(matches) != 1 or matches[0] in chosen:
            break
        chosen.append(matches[0])
    return tuple(dataclasses.replace(device, index=index) for index, device in enumerate(chosen))


def choose_device(choice: DeviceChoice, found: Sequence[CudaDevice] | None = None) -> Device:
    """The device that the settings ask for, or the emulator with the reason.

    Args:
        found: the machine's GPUs; None: ask the driver.

    Raises:
        EnvironmentFault: the settings insist on CUDA and there is no such GPU.
    """
    if choice.kind == "emulator":
        return _emulator("the settings ask for it", choice.arch)
    found = devices() if found is None else found
    if choice.index < len(found):
        return dataclasses.replace(found[choice.index], target=choice.arch)
    why = f"there are {len(found)} visible GPUs, and number {choice.index} was asked for" if found else NO_GPU
    if choice.kind == "cuda" or found:
        raise EnvironmentFault("the CUDA device was not found", where="device.index", why=why, advice=_ADVICE)
    return _emulator(why, choice.arch)


def _emulator(reason: str, arch: str) -> EmulatorDevice:
    return EmulatorDevice(reason, arch) if arch else EmulatorDevice(reason)


@contextlib.contextmanager
def nvml_session() -> Iterator[Any]:
    """NVML's Python module, initialised; None where there is no driver."""
    pynvml = importlib.import_module("pynvml")  # late: commands that need no GPU do not pay for it

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def ask(nvml: Any, question: Callable[..., Any], *args: Any) -> Any:
    """An answer of NVML's, or None where this device or driver has none."""
    try:
        return question(*args)
    except (nvml.NVMLError, nvml.NVMLLibraryMismatchError):
        return None


def _device(nvml: Any, handle: Any, number: int, driver: str, cuda: tuple[int, int]) -> CudaDevice:
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    return CudaDevice(
        index=number,
        uuid=str(nvml.nvmlDeviceGetUUID(handle)),
        name=str(nvml.nvmlDeviceGetName(handle)),
        capability=(int(major), int(minor)),
        memory_bytes=int(getattr(ask(nvml, nvml.nvmlDeviceGetMemoryInfo, handle), "total", 0)),
        driver=driver,
        cuda=cuda,
        memory_clock_mhz=ask(nvml, nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_MEM) or 0,
        bus_bits=ask(nvml, nvml.nvmlDeviceGetMemoryBusWidth, handle) or 0,
        sm_clock_mhz=ask(nvml, nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM) or 0,
        cores=ask(nvml, nvml.nvmlDeviceGetNumGpuCores, handle) or 0,
    )
