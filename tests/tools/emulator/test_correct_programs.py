"""Correct programs with awkward syntax or synchronisation: right results, and the checker stays silent."""

import asyncio
import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor

from stitch_tui.tools.emulator import Emulator, FrontEnd, Mode
from tests.tools.emulator.judge import Call, findings_of

HERE = Path(__file__).parent
NVCC = pytest.mark.skipif(not shutil.which("nvcc"), reason="the ptx front end needs nvcc")


async def outputs(
    emulator: Emulator, path: Path, call: Call, mode: Mode, front_end: FrontEnd = FrontEnd.SOURCE
) -> list[Tensor]:
    build = await emulator.build(path, mode, front_end=front_end)
    answer, findings = await findings_of(emulator, build, call)
    assert answer, findings
    assert answer.rc == 0
    assert not findings
    return answer.outputs


def syntax() -> tuple[Call, list[Tensor]]:
    expected = torch.full((300,), 21.0)
    t = torch.arange(64.0)
    expected[:64] = t + (63 - t) * 2 + 2 + 64 * 2
    expected[:40] += 3 + 7
    return Call([], [torch.empty(300)], workspace=4096), [expected]


def synchronisation() -> tuple[Call, list[Tensor]]:
    torch.manual_seed(0)
    x, index = torch.randn(4096), torch.arange(384, dtype=torch.int32)
    ring = x[:64].clone()
    for _ in range(6):
        ring = 0.5 * (ring.roll(-1) + ring.roll(1))
    head = torch.cat([x.sum().reshape(1), x[:64].reshape(2, 32).sum(1), torch.tensor([8.0])])
    call = Call([x, index], [torch.empty(132), torch.empty(1, dtype=torch.int32)], workspace=4096)
    return call, [torch.cat([head, x[:64] * 2 + 1, ring]), torch.tensor([128], dtype=torch.int32)]


def rarer_features() -> tuple[Call, list[Tensor]]:
    bad = torch.zeros(16, dtype=torch.int32)
    return Call([], [bad], workspace=4096), [bad]


PROGRAMS = {"g01_syntax": syntax, "g02_sync_patterns": synchronisation, "g03_misc": rarer_features}


def agree(got: list[Tensor], expected: list[Tensor], tolerance: float) -> None:
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_awkward_but_correct_program_is_left_alone(emulator: Emulator, name: str) -> None:
    call, expected = PROGRAMS[name]()
    agree(asyncio.run(outputs(emulator, HERE / "good" / f"{name}.cu", call, Mode.CHECK)), expected, 1e-3)


@pytest.mark.slow
@NVCC
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_awkward_but_correct_program_is_left_alone_after_nvcc(emulator: Emulator, name: str) -> None:
    call, expected = PROGRAMS[name]()
    path = HERE / "good" / f"{name}.cu"
    agree(asyncio.run(outputs(emulator, path, call, Mode.CHECK, FrontEnd.PTX)), expected, 1e-3)


def scans() -> tuple[Call, list[Tensor]]:
    x = torch.rand(5000)
    expected = torch.cat([x.sum().reshape(1), x.cumsum(0), x[:128].cumsum(0)])
    return Call([x], [torch.empty(5129)]), [expected]


def standard_library() -> tuple[Call, list[Tensor]]:
    u = torch.randn(128)
    s = torch.sin(u * 1000) + u.exp() + u.abs() ** 1.7 + torch.erf(u)
    expected = torch.cat([s.flip(0) + (u * 0.1).half().exp().float(), torch.tensor([128.0])])
    return Call([u], [torch.empty(129)]), [expected]


def tensor_cores() -> tuple[Call, list[Tensor]]:
    a, b, x, y = (
        torch.randn(16, 16).bfloat16(),
        torch.randn(16, 16).bfloat16(),
        torch.randn(16, 8),
        torch.randn(8, 16),
    )
    expected = [a.float() @ b.float().t(), (x @ y + 1).t().contiguous()]
    return Call([a, b, x, y], [torch.empty(16, 16), torch.empty(16, 16)]), expected


LIBRARIES = {"h01_cub_device": scans, "h02_libcupp": standard_library, "h03_tf32_bf16_mma": tensor_cores}


@pytest.mark.slow
@NVCC
@pytest.mark.parametrize("name", LIBRARIES)
def test_a_program_full_of_nvidia_s_headers_runs_after_nvcc(emulator: Emulator, name: str) -> None:
    torch.manual_seed(0)
    call, expected = LIBRARIES[name]()
    path = HERE / "hard" / f"{name}.cu"
    agree(asyncio.run(outputs(emulator, path, call, Mode.FAST, FrontEnd.PTX)), expected, 2e-2)


def test_threads_in_any_order_give_the_same_result(emulator: Emulator) -> None:
    call, expected = synchronisation()

    async def run() -> None:
        build = await emulator.build(HERE / "good" / "g02_sync_patterns.cu", Mode.FAST)
        for order in (1, 2):
            answer, _ = await findings_of(emulator, build, call, order=order)
            assert answer
            agree(answer.outputs, expected, 1e-3)

    asyncio.run(run())
