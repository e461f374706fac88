"""The CUDA devices of this machine, as NVML tells: no CUDA context, no torch."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import pynvml


@dataclass(frozen=True)
class Gpu:
    """One device."""

    index: int
    """NVML's."""
    name: str
    uuid: str
    arch: str
    """Compute capability as nvcc names it: ``sm_90``."""
    memory_gib: float


def gpus(environ: Mapping[str, str] = os.environ) -> tuple[list[Gpu], str]:
    """The devices that CUDA programs see here, and the driver's version; none, and why there are none.

    NVML counts in PCI order, CUDA fastest first unless CUDA_DEVICE_ORDER says otherwise: the two differ
    only on machines with unlike devices.
    """
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return [], f"no NVIDIA driver: {error}"
    try:
        found = [_gpu(index) for index in range(pynvml.nvmlDeviceGetCount())]
        version = str(pynvml.nvmlSystemGetDriverVersion())
    except pynvml.NVMLError as error:
        return [], f"the NVIDIA driver fails: {error}"
    finally:
        pynvml.nvmlShutdown()
    seen = visible(found, environ.get("CUDA_VISIBLE_DEVICES"))
    return seen, version if seen else "CUDA_VISIBLE_DEVICES hides every device" if found else "no device"


def visible(devices: list[Gpu], variable: str | None) -> list[Gpu]:
    """The devices that CUDA_VISIBLE_DEVICES leaves, in its order; like CUDA, up to the first wrong entry."""
    if variable is None:
        return devices
    chosen: list[Gpu] = []
    for entry in map(str.strip, variable.split(",")):
        match = [g for g in devices if entry and (entry == str(g.index) or g.uuid.startswith(entry))]
        if len(match) != 1:
            break
        chosen += match
    return chosen


def _gpu(index: int) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    return Gpu(
        index=index,
        name=str(pynvml.nvmlDeviceGetName(handle)),
        uuid=str(pynvml.nvmlDeviceGetUUID(handle)),
        arch=f"sm_{major}{minor}",
        memory_gib=pynvml.nvmlDeviceGetMemoryInfo(handle).total / 2**30,
    )
