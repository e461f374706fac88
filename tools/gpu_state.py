"""What a GPU is doing now: clocks, heat, throttling, and who else uses it.  Nothing is ever set."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stitch_tui.tools.gpu import ask, nvml_session

_THROTTLE = {
    "power cap": "nvmlClocksThrottleReasonSwPowerCap",
    "hardware slowdown": "nvmlClocksThrottleReasonHwSlowdown",
    "sync boost": "nvmlClocksThrottleReasonSyncBoost",
    "software thermal": "nvmlClocksThrottleReasonSwThermalSlowdown",
    "hardware thermal": "nvmlClocksThrottleReasonHwThermalSlowdown",
    "power brake": "nvmlClocksThrottleReasonHwPowerBrakeSlowdown",
}


@dataclass(frozen=True)
class Sample:
    """A GPU at one moment; None where the driver does not say."""

    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    busy_percent: int | None = None
    throttled: tuple[str, ...] = ()
    """Why the clocks are lowered now; that an idle GPU lowers its own is not among the reasons."""


@dataclass(frozen=True)
class GpuProcess:
    """A process that computes on a GPU."""

    pid: int
    name: str
    memory_bytes: int
    """0 where the driver does not say, as inside some containers."""
    visible: bool
    """Whether its pid exists here; if not, it may even be one of ours, seen from outside a container."""


def sample(uuid: str) -> Sample:
    """The state of that GPU; an empty one when it or the driver is gone."""
    with nvml_session() as nvml:
        if nvml is None or (handle := ask(nvml, nvml.nvmlDeviceGetHandleByUUID, uuid)) is None:
            return Sample()
        power = ask(nvml, nvml.nvmlDeviceGetPowerUsage, handle)
        limit = ask(nvml, nvml.nvmlDeviceGetPowerManagementLimit, handle)
        rates = ask(nvml, nvml.nvmlDeviceGetUtilizationRates, handle)
        return Sample(
            sm_clock_mhz=ask(nvml, nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            memory_clock_mhz=ask(nvml, nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM),
            temperature_c=ask(nvml, nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            power_w=None if power is None else power / 1000,
            power_limit_w=None if limit is None else limit / 1000,
            busy_percent=None if rates is None else rates.gpu,
            throttled=_reasons(nvml, handle),
        )


def strangers(uuid: str, ours: Collection[int] = ()) -> tuple[GpuProcess, ...]:
    """Processes other than `ours` that compute on that GPU: a timing beside them means little."""
    with nvml_session() as nvml:
        if nvml is None or (handle := ask(nvml, nvml.nvmlDeviceGetHandleByUUID, uuid)) is None:
            return ()
        running = ask(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handle) or ()
        return tuple(_process(nvml, entry) for entry in running if entry.pid not in ours)


def _process(nvml: Any, entry: Any) -> GpuProcess:
    pid = int(entry.pid)
    return GpuProcess(
        pid=pid,
        name=str(ask(nvml, nvml.nvmlSystemGetProcessName, pid) or ""),
        memory_bytes=int(entry.usedGpuMemory or 0),
        visible=Path(f"/proc/{pid}").exists(),
    )


def _reasons(nvml: Any, handle: Any) -> tuple[str, ...]:
    mask = ask(nvml, nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle) or 0
    return tuple(reason for reason, name in _THROTTLE.items() if mask & getattr(nvml, name))
