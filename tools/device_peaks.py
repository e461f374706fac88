"""The device's peaks as measured on it: once for each GPU and driver, then from the cache."""

import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict, PositiveFloat, ValidationError

from stitch_tui.tools.atomic_write import replace_file
from stitch_tui.tools.bench import Bench, OnEvent
from stitch_tui.tools.errors import StitchError
from stitch_tui.tools.gpu import CudaDevice
from stitch_tui.tools.paths import cache_dir
from stitch_tui.tools.roofline import Peaks, peaks_of

SECONDS = 120.0
"""For measuring; an H200 takes two."""
BELIEVED = 0.5
"""Of the data sheet's bandwidth: who measures less shared the device with somebody."""


class _Measured(BaseModel):
    """Bytes a second, and FLOP/s by what is multiplied, as the judge's method ``peaks`` gives them."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    bandwidth: PositiveFloat
    f64: PositiveFloat
    f32: PositiveFloat
    tf32: PositiveFloat
    f16: PositiveFloat
    bf16: PositiveFloat


async def device_peaks(bench: Bench, device: CudaDevice, on_event: OnEvent | None = None) -> Peaks | None:
    """Measured on that GPU with its driver; what is known of its kind where that fails or is not believed.

    None where nothing is known either.
    """
    path = cache_dir("peaks") / re.sub(r"[^\w.-]", "_", f"{device.uuid}_{device.driver}.json")
    known = peaks_of(device)
    measured = _cached(path) or await _measured(bench, path, known, on_event)
    if measured is None:
        return known
    return Peaks(
        bandwidth=measured.bandwidth,
        f64=measured.f64,
        f32=measured.f32,
        tf32=measured.tf32,
        f16=max(measured.f16, measured.bf16),
        source=f"measured on this GPU with driver {device.driver}: copies and PyTorch's products",
    )


def _cached(path: Path) -> _Measured | None:
    try:
        return _Measured.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


async def _measured(
    bench: Bench, path: Path, known: Peaks | None, on_event: OnEvent | None
) -> _Measured | None:
    """The peaks, alone on the GPU; kept only when they are believed."""
    try:
        async with bench.gpu("measuring the device's peaks", alone=True, on_event=on_event):
            told = _Measured.model_validate(await bench.judge.call("peaks", timeout=SECONDS))
        if known and told.bandwidth < BELIEVED * known.bandwidth:
            return None
        replace_file(path, told.model_dump_json().encode())
    except (StitchError, ValidationError, OSError):
        return None
    return told
