"""Programs with kernels, in real runner processes on the emulator."""

import gc
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from stitch_tui.tools import worker
from stitch_tui.tools.bundle import render

HOST = Path(worker.__file__).parent / "kernel_host.py"

UNARY = """
#include "stitch.h"
#include <math.h>
__global__ void apply(const float* x, float* y, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) { float v = x[i]; y[i] = EXPRESSION; }
}
extern "C" int stitch_run(const stitch_call* c) {
  int64_t n = c->in[0].numel;
  const float* x = (const float*)c->in[0].data;
  apply<<<(n + 63) / 64, 64, 0, (cudaStream_t)c->stream>>>(x, (float*)c->out[0].data, n);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
"""
# Keeps its own copy of the weight: wrong after a change of weights unless bind runs again.
GAIN = """
#include "stitch.h"
__global__ void copy(const float* from, float* to, int64_t n) {
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) to[i] = from[i];
}
__global__ void gain(const float* x, const float* w, float* y, int64_t rows, int64_t columns, double scale) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < rows * columns) y[i] = (x[i] > 0 ? x[i] : 0) * w[i % columns] * scale;
}
extern "C" int stitch_sizes(const stitch_call* c, int64_t* workspace, int64_t* bound) {
  *workspace = 4 * c->in[0].numel;
  *bound = 4 * c->in[1].numel;
  return STITCH_OK;
}
extern "C" int stitch_bind(const stitch_call* c) {
  if (c->in[1].flags != STITCH_PARAM || c->bound_bytes != 4 * c->in[1].numel) return STITCH_BAD_CALL;
  copy<<<1, 32, 0, (cudaStream_t)c->stream>>>((const float*)c->in[1].data, (float*)c->bound, c->in[1].numel);
  return STITCH_OK;
}
extern "C" int stitch_run(const stitch_call* c) {
  if (c->workspace_bytes != 4 * c->in[0].numel) return STITCH_BAD_CALL;
  if (c->n_float != 1 || c->n_int != 1 || c->ints[0] != 7) return STITCH_BAD_CALL;
  int64_t rows = c->in[0].shape[0], columns = c->in[0].shape[1], n = rows * columns;
  copy<<<1, 32, 0, (cudaStream_t)c->stream>>>((const float*)c->in[0].data, (float*)c->workspace, n);
  gain<<<(n + 63) / 64, 64, 0, (cudaStream_t)c->stream>>>((const float*)c->workspace, (const float*)c->bound,
      (float*)c->out[0].data, rows, columns, c->floats[0]);
  return STITCH_OK;
}
"""
GAINED = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.randn(5))
    def forward(self, x):
        return torch.tanh(F.relu(x) * self.gain)
def get_inputs():
    return [torch.randn(3, 5)]
"""
CHAIN = """
class Model(nn.Module):
    def forward(self, x):
        y = torch.sin(torch.neg(torch.exp(torch.relu(x.t()))))
        return y, torch.cos(y).t()
def get_inputs():
    return [torch.randn(3, 5)]
"""


def unary(expression: str) -> str:
    return UNARY.replace("EXPRESSION", expression)


def gained(case: Any) -> tuple[Any, Mapping[str, bytes]]:
    exported = case(GAINED)
    kernel = exported.kernel("s01", ["relu", "mul"], GAIN)
    region = kernel.region.model_copy(update={"ints": (7,), "floats": (1.0,)})
    return exported, render(exported.program([kernel.model_copy(update={"region": region})]))


def test_a_kernel_with_workspace_and_bound_weights_computes_the_reference(
    case: Any, on_emulator: Any, assert_same: Any
) -> None:
    exported, files = gained(case)
    module = on_emulator(files)
    torch.manual_seed(0)
    mine, reference = module.ModelNew(), exported.model()
    for seed in (1, 2):
        args = exported.reference.draw_inputs(seed)
        assert_same(mine(*args), reference(*args), rtol=1e-6, atol=1e-6)
    strided = torch.randn(5, 3).t()
    assert_same(mine(strided), reference(strided), rtol=1e-6, atol=1e-6)


def test_weights_changed_in_place_replaced_or_loaded_are_bound_again(
    case: Any, on_emulator: Any, assert_same: Any
) -> None:
    exported, files = gained(case)
    module = on_emulator(files)
    torch.manual_seed(0)
    mine, reference = module.ModelNew(), exported.model()
    args = exported.reference.draw_inputs(1)
    mine(*args)
    with torch.no_grad():
        mine.gain.mul_(-3)
        reference.gain.mul_(-3)
    assert_same(mine(*args), reference(*args), rtol=1e-6, atol=1e-6)
    mine.gain = torch.nn.Parameter(torch.ones(5))
    reference.gain = torch.nn.Parameter(torch.ones(5))
    assert_same(mine(*args), reference(*args), rtol=1e-6, atol=1e-6)
    mine.load_state_dict({"gain": torch.arange(5.0)})
    reference.load_state_dict({"gain": torch.arange(5.0)})
    assert_same(mine(*args), reference(*args), rtol=1e-6, atol=1e-6)


def test_writes_through_data_need_invalidate(case: Any, on_emulator: Any, assert_same: Any) -> None:
    exported, files = gained(case)
    mine = on_emulator(files).ModelNew()
    args = exported.reference.draw_inputs(1)
    before = mine(*args)
    mine.gain.data.neg_()
    assert_same(mine(*args), before)
    mine.invalidate()
    assert_same(mine(*args), -before, rtol=1e-6, atol=1e-6)


def chain(case: Any) -> tuple[Any, Mapping[str, bytes]]:
    exported = case(CHAIN)
    bodies = {"relu": "v > 0 ? v : 0", "exp": "expf(v)", "neg": "-v", "sin": "sinf(v)", "cos": "cosf(v)"}
    kernels = [exported.kernel(f"k-{op}", [op], unary(body)) for op, body in bodies.items()]
    return exported, render(exported.program(kernels))


def test_intermediates_share_memory_and_results_do_not(case: Any, on_emulator: Any, assert_same: Any) -> None:
    exported, files = chain(case)
    module = on_emulator(files)
    mine, reference = module.ModelNew(), exported.model()
    kernels = {kernel.id: kernel for kernel in module.ModelNew.stitch_program.kernels}
    offsets = {name: kernel.outputs[0].offset for name, kernel in kernels.items()}
    assert offsets == {"k-relu": 0, "k-exp": 256, "k-neg": 0, "k-sin": None, "k-cos": None}
    assert module.ModelNew.stitch_program.arena_bytes == 512
    results = []
    for seed in (1, 2):
        args = exported.reference.draw_inputs(seed)
        results.append((mine(*args), reference(*args)))
    for got, expected in results:
        assert_same(got, expected, rtol=1e-6, atol=1e-6)


def test_a_code_from_the_kernel_is_explained(case: Any, on_emulator: Any) -> None:
    exported = case(GAINED)
    source = '#include "stitch.h"\nextern "C" int stitch_run(const stitch_call*) { return 2; }'
    mine = on_emulator(render(exported.program([exported.kernel("s01", ["tanh"], source)]))).ModelNew()
    with pytest.raises(RuntimeError, match=r"kernel s01\.cu reported shapes it does not support \(code 2\)"):
        mine(torch.zeros(3, 5))


def test_a_kernel_that_runs_out_of_bounds_is_reported(case: Any, on_emulator: Any) -> None:
    exported = case(GAINED)
    source = unary("tanhf(v)").replace("if (i < n)", "")
    mine = on_emulator(render(exported.program([exported.kernel("s01", ["tanh"], source)]))).ModelNew()
    with pytest.raises(RuntimeError, match=r"s01.*bounds"):
        mine(torch.zeros(3, 5))


def test_runners_end_with_the_model(case: Any, on_emulator: Any) -> None:
    _, files = gained(case)
    mine = on_emulator(files).ModelNew()
    mine(torch.zeros(3, 5))
    (bindings,) = mine._stitch.bindings.values()
    process = bindings["s01"].backend.runner.process
    assert process.poll() is None
    del mine, bindings
    gc.collect()
    assert process.poll() is not None


def test_without_a_gpu_the_error_names_the_way_to_verify(case: Any, load: Any) -> None:
    _, files = gained(case)
    mine = load(files).ModelNew()
    with pytest.raises(RuntimeError, match=r"no GPU here; `stitch verify stitched/model_new\.py` runs it"):
        mine(torch.zeros(3, 5))


def test_a_kernel_without_a_process_is_named(
    case: Any, load: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, files = gained(case)
    (tmp_path / "none.json").write_text("{}")
    monkeypatch.setenv("STITCH_KERNELS", str(tmp_path / "none.json"))
    with pytest.raises(RuntimeError, match="STITCH_KERNELS needs STITCH_HOST"):
        load(files).ModelNew()(torch.zeros(3, 5))
    monkeypatch.setenv("STITCH_HOST", str(HOST))
    with pytest.raises(RuntimeError, match=r"STITCH_KERNELS does not name s01\.cu"):
        load(files).ModelNew()(torch.zeros(3, 5))


def test_a_runner_that_ends_is_an_error_that_names_it(
    case: Any, load: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, files = gained(case)
    table = {"s01.cu": {"argv": ["/bin/sh", "-c", "exit 9"], "env": {"PATH": os.defpath}}}
    (tmp_path / "kernels.json").write_text(json.dumps(table))
    monkeypatch.setenv("STITCH_KERNELS", str(tmp_path / "kernels.json"))
    monkeypatch.setenv("STITCH_HOST", str(HOST))
    with pytest.raises(RuntimeError, match="sh ended: exit status 9"):
        load(files).ModelNew()(torch.zeros(3, 5))
