"""The CUDA devices of this machine, as NVML tells: no CUDA context, no torch."""

from dataclasses import dataclass

import pynvml


@dataclass(frozen=True)
class Gpu:
    """One device."""

    index: int
    name: str
    uuid: str
    arch: str
    """Compute capability as nvcc names it: ``sm_90``."""
    memory_gib: float


def gpus() -> tuple[list[Gpu], str]:
    """Every device and the driver's version; none and the reason where there is no driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return [], f"no NVIDIA driver: {error}"
    try:
        found = [_gpu(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return found, str(pynvml.nvmlSystemGetDriverVersion())
    except pynvml.NVMLError as error:
        return [], f"the NVIDIA driver fails: {error}"
    finally:
        pynvml.nvmlShutdown()


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
