"""Sixteen kernels against PyTorch: right results, and not one finding."""

import asyncio
import shutil
from pathlib import Path

import pytest
import torch

from stitch_tui.tools.emulator import Emulator, FrontEnd, Mode
from tests.tools.emulator.cases import CASES, drawn
from tests.tools.emulator.judge import findings_of

KERNELS = Path(__file__).parent / "kernels"
BRIEF = ("03_softmax_shfl", "12_rnn_graph")
"""Fast mode by default; the others in fast mode are slow tests."""
LIBRARIES_OF_NVIDIA = ("12_rnn_graph",)
"""Needs cuBLAS's own headers with nvcc."""


async def judged(emulator: Emulator, name: str, mode: Mode, front_end: FrontEnd) -> None:
    case = drawn(name)
    build = await emulator.build(KERNELS / f"{name}.cu", mode, front_end=front_end)
    answer, findings = await findings_of(emulator, build, case.call)
    assert answer, findings
    assert answer.rc == 0
    assert not findings
    for got, expected in zip(answer.outputs, case.expected, strict=True):
        torch.testing.assert_close(got, expected, rtol=0, atol=case.tolerance)


@pytest.mark.parametrize("name", CASES)
def test_a_checked_kernel_agrees_with_pytorch_without_a_finding(emulator: Emulator, name: str) -> None:
    asyncio.run(judged(emulator, name, Mode.CHECK, FrontEnd.SOURCE))


@pytest.mark.parametrize("name", BRIEF)
def test_a_fast_kernel_agrees_with_pytorch(emulator: Emulator, name: str) -> None:
    asyncio.run(judged(emulator, name, Mode.FAST, FrontEnd.SOURCE))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(CASES) - set(BRIEF)))
def test_every_fast_kernel_agrees_with_pytorch(emulator: Emulator, name: str) -> None:
    asyncio.run(judged(emulator, name, Mode.FAST, FrontEnd.SOURCE))


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nvcc"), reason="the ptx front end needs nvcc")
@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("name", sorted(set(CASES) - set(LIBRARIES_OF_NVIDIA)))
def test_a_kernel_that_nvcc_compiled_agrees_with_pytorch(emulator: Emulator, name: str, mode: Mode) -> None:
    asyncio.run(judged(emulator, name, mode, FrontEnd.PTX))
