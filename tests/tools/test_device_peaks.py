"""What a device reaches: measured once for each GPU and driver, and the data sheet where that fails."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from stitch_tui.tools.bench import Bench
from stitch_tui.tools.device_peaks import device_peaks
from stitch_tui.tools.errors import ReferenceFault
from stitch_tui.tools.gpu import CudaDevice
from stitch_tui.tools.roofline import Peaks, fastest, peaks_of
from stitch_tui.tools.worker import peaks as worker

H200 = CudaDevice(0, "GPU-1", "NVIDIA H200", (9, 0), 141 << 30, "580.1", (13, 0))
MEASURED = {"bandwidth": 4.1e12, "f64": 50e12, "f32": 51e12, "tf32": 400e12, "f16": 790e12, "bf16": 800e12}


class Judge:
    """Gives the figures that it was made with, or fails; counts how often it was asked."""

    def __init__(self, told: Mapping[str, float] | None) -> None:
        self.told, self.asked = told, 0

    async def call(self, method: str, params: Any = None, *, timeout: float, on_event: Any = None) -> Any:
        assert method == "peaks"
        self.asked += 1
        if self.told is None:
            raise ReferenceFault("out of memory")
        return self.told


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "stitch" / "peaks"


def peaks(judge: Judge, device: CudaDevice = H200) -> Peaks | None:
    return asyncio.run(device_peaks(Bench(judge, None), device))


def test_a_device_is_measured_once_for_each_driver() -> None:
    judge = Judge(MEASURED)
    first, second = peaks(judge), peaks(judge)
    assert first
    assert first == second
    assert (first.bandwidth, first.f32, first.f16) == (4.1e12, 51e12, 800e12)
    assert "measured on this GPU with driver 580.1" in first.source
    assert judge.asked == 1
    peaks(judge, replace(H200, driver="590.2"))
    peaks(judge, replace(H200, uuid="GPU-2"))
    assert judge.asked == 3


def test_a_damaged_cache_is_measured_again(cache: Path) -> None:
    judge = Judge(MEASURED)
    peaks(judge)
    (kept,) = cache.iterdir()
    for content in ("", "{", json.dumps(MEASURED | {"bandwidth": 0}), json.dumps({"bandwidth": 1})):
        kept.write_text(content)
        peaks(judge)
    assert judge.asked == 5


@pytest.mark.parametrize("told", [None, {"bandwidth": 1e12}, MEASURED | {"bandwidth": 0.4e12}, {}])
def test_what_fails_or_cannot_be_leaves_the_data_sheet_and_no_cache(
    cache: Path, told: dict[str, float] | None
) -> None:
    assert peaks(Judge(told)) == peaks_of(H200)
    assert list(cache.iterdir()) == []


def test_an_unknown_device_is_known_once_it_is_measured() -> None:
    stranger = replace(H200, name="NVIDIA Something", uuid="GPU-3")
    assert peaks(Judge(None), stranger) is None
    found = peaks(Judge(MEASURED), stranger)
    assert found
    assert found.tf32 == 400e12


def test_no_program_is_accused_by_a_measured_peak_below_the_data_sheet() -> None:
    sheet, measured = peaks_of(H200), peaks(Judge(MEASURED | {"f64": 70e12}))
    assert sheet
    most = fastest(measured, sheet)
    assert most
    assert (most.bandwidth, most.f16, most.f64) == (sheet.bandwidth, sheet.f16, 70e12)
    assert fastest(None, sheet) is sheet


def test_the_judge_measures_copies_and_products_and_leaves_the_generator_alone() -> None:
    state = torch.get_rng_state()
    cpu = torch.device("cpu")
    assert worker.bandwidth(cpu, 1 << 20) > 0
    assert worker.products(torch.float32, cpu, (16, 32)) > 0
    assert torch.equal(torch.get_rng_state(), state)
    assert set(MEASURED) == {"bandwidth", *worker.PRODUCTS}
