"""Timed bursts: which values the sets get, and the CUDA runner's part in it, on host memory."""

import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from stitch_tui.tools.worker.cuda_driver import CudaDriver, CudaDriverError
from stitch_tui.tools.worker.examination import border_of
from stitch_tui.tools.worker.launch import Launch
from stitch_tui.tools.worker.rig import Border
from stitch_tui.tools.worker.timed_rig import TimedRig, is_mixable, renew
from stitch_tui.tools.worker.variants import FULL

from . import fake_cuda_runner
from .linear_target import TOOLS, LinearRelu, compiled

RAGGED = """
#include "stitch.h"
int stitch_run(const stitch_call* c) {
  const float* x = c->in[0].data;
  const int64_t* ends = c->in[1].data;
  float* y = c->out[0].data;
  for (int64_t row = 0, at = 0; row < c->in[1].numel; row++) {
    if (ends[row] < at || ends[row] > c->in[0].numel) return 1;
    for (y[row] = 0; at < ends[row]; at++) y[row] += x[at];
  }
  return 0;
}
"""
"""Sums of rows of different lengths; ends that do not grow are an error."""


@contextmanager
def timed(border: Border, library: Path) -> Iterator[TimedRig]:
    argv = (sys.executable, fake_cuda_runner.__file__, "cuda")
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    rig = TimedRig(border, Launch(argv, load=str(library), env=environment, isolate=False))
    try:
        yield rig
    finally:
        rig.close()


def test_the_host_driver_is_called_like_the_real_one() -> None:
    for name, method in inspect.getmembers(fake_cuda_runner.HostDriver, inspect.isfunction):
        assert inspect.signature(method) == inspect.signature(getattr(CudaDriver, name)), name


@pytest.mark.parametrize("cold", [True, False])
def test_every_launch_of_a_burst_finds_its_own_set_and_leaves_its_result(tmp_path: Path, cold: bool) -> None:
    target = LinearRelu()
    tensors = target.draw(FULL, 1)
    with timed(border_of(target), compiled(tmp_path)) as rig:
        rig.prepare(tensors, target.evaluate(tensors, "own"), sets=4)
        before = rig.given(0)[0].clone()
        done = rig.burst(4, cold=cold)
        assert (done.times_us, len(done.host_us)) == ([1.0] * 4, 4)
        assert sorted(rig.order) == [0, 1, 2, 3]
        assert not torch.equal(rig.given(0)[0], before)
        for number in rig.order:
            expected = target.evaluate(rig.given(number), "own")
            torch.testing.assert_close(rig.delivered(number), expected)
        assert len(rig.burst(10, cold=cold).times_us) == 10


@pytest.mark.slow
def test_what_was_bound_outlasts_the_room_that_more_sets_take(tmp_path: Path) -> None:
    rows = 1 << 19
    x, weight, bias = torch.rand(rows, 33), torch.randn(7, 33), torch.randn(7)
    with timed(border_of(target := LinearRelu()), compiled(tmp_path)) as rig:
        rig.prepare([x, weight, bias], target.evaluate([x, weight, bias], "own"), sets=7)
        rig.burst(1, cold=True)
        (number,) = rig.order
        torch.testing.assert_close(rig.delivered(number), target.evaluate(rig.given(number), "own"))


def test_indices_come_from_a_draw_of_the_reference_and_are_never_mixed(tmp_path: Path) -> None:
    source, library = tmp_path / "ragged.c", tmp_path / "ragged.so"
    source.write_text(RAGGED)
    if (compiler := shutil.which("gcc") or shutil.which("cc")) is None:
        pytest.skip("no C compiler")
    command = [compiler, "-w", "-shared", "-fPIC", f"-I{TOOLS / 'include'}", str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    x = torch.rand(64)
    draws = [torch.randint(65, (5,)).sort().values for _ in range(4)]
    border = Border(("x", "ends"), ("activation", "activation"), ("y",))
    with timed(border, library) as rig:
        rig.prepare([x, draws[0]], [torch.empty(5)], sets=4, others=[[x, ends] for ends in draws[1:]])
        for _ in range(3):
            rig.burst(4, cold=True)
            for number in range(4):
                values, ends = rig.given(number)
                assert any(torch.equal(ends, draw) for draw in draws)
                parts = torch.tensor_split(values, ends)[:-1]
                expected = torch.stack([part.sum() for part in parts])
                torch.testing.assert_close(rig.delivered(number)[0], expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(), (1,), (2,), (0, 3), (40, 50)])
def test_renewed_values_stay_in_the_range_of_the_old(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    tensor = torch.rand(shape).to(dtype)
    before = tensor.clone()
    renew(tensor)
    assert tensor.shape == before.shape
    if tensor.numel():
        assert tensor.max() <= before.max()
        assert tensor.min() >= before.min()
    if tensor.numel() > 2:
        assert not torch.equal(tensor, before)


def test_renewed_values_have_another_sum() -> None:
    tensor = torch.rand(1000, dtype=torch.float64)
    before = float(tensor.sum())
    renew(tensor)
    assert abs(float(tensor.sum()) - before) > 1e-6


def test_renewed_values_have_no_ties_that_the_old_had_not() -> None:
    tensor = torch.rand(1 << 14, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    renew(tensor)
    assert len(tensor.unique()) == len(tensor)


def test_indices_and_masks_are_not_mixable() -> None:
    assert is_mixable(torch.rand(3))
    assert is_mixable(torch.empty(0))
    assert not is_mixable(torch.arange(3))
    assert not is_mixable(torch.rand(3) < 0.5)
    assert not is_mixable(torch.zeros(3, 3).masked_fill(torch.ones(3, 3).triu(1).bool(), -torch.inf))


@pytest.mark.parametrize("answer", [215, 700])
def test_a_device_that_cannot_pin_pins_nothing_but_other_errors_are_told(answer: int) -> None:
    driver = CudaDriver.__new__(CudaDriver)
    driver._lib = SimpleNamespace(cuCtxGetLimit=lambda *_: answer, cuGetErrorName=lambda *_: 1)  # type: ignore[assignment]
    if answer == 215:
        assert not driver.pins_l2()
    else:
        with pytest.raises(CudaDriverError, match="cuCtxGetLimit"):
            driver.pins_l2()
