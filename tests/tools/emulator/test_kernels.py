"""Sixteen kernels against PyTorch."""

import asyncio
from pathlib import Path

import pytest
import torch

from stitch_tui.tools.emulator import Emulator, Mode
from tests.tools.emulator.judge import Call, findings_of

KERNELS = Path(__file__).parent / "kernels"


@pytest.mark.parametrize("mode", list(Mode))
def test_a_vector_sum_is_right(emulator: Emulator, mode: Mode) -> None:
    async def run() -> None:
        build = await emulator.build(KERNELS / "01_vadd_float4.cu", mode)
        x, y = torch.randn(1003), torch.randn(1003)
        answer, findings = await findings_of(emulator, build, Call([x, y], [torch.empty(1003)]))
        assert answer
        assert answer.rc == 0
        assert torch.equal(answer.outputs[0], x + y)
        assert not findings

    asyncio.run(run())
