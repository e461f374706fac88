"""From a file on disk, through the judge's process, to a stitched program that equals it."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from stitch_tui.tools import reference
from stitch_tui.tools.bundle import Kernel, Program, ReferenceSource, read_bundle, read_layout, render
from stitch_tui.tools.graph import region_of
from stitch_tui.tools.judge import Judge
from stitch_tui.tools.reference import ReferenceOptions, open_reference
from stitch_tui.tools.worker.encoding import Unencodable
from stitch_tui.tools.worker.structure import structure_of

MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm1d(width)

    def forward(self, pair, *, absent=None):
        a, b = pair
        y = self.norm(torch.relu(a)) + torch.tensor([0.5, 0.25, 1.0])
        return [y, (y * b,)]


def get_inputs():
    return [(torch.randn(4, 3), torch.randn(4, 3))]


def get_init_inputs():
    return [3]
"""
RELU = """
#include "stitch.h"
__global__ void relu(const float* x, float* y, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
extern "C" int stitch_run(const stitch_call* c) {
  int64_t n = c->in[0].numel;
  const float* x = (const float*)c->in[0].data;
  relu<<<(n + 31) / 32, 32, 0, (cudaStream_t)c->stream>>>(x, (float*)c->out[0].data, n);
  return STITCH_OK;
}
"""


async def program_of(project: Path, path: str) -> Program:
    async with Judge(sys.executable, project) as judge:
        summary = await open_reference(judge, ReferenceOptions(path=path))
        graph = (await reference.graph(judge)).graph
        layout = await read_layout(judge)
    relu = next(node.id for node in graph.nodes if node.op.startswith("aten.relu"))
    kernel = Kernel(id="s01", title="relu", region=region_of(graph, [relu]), source=RELU)
    source = ReferenceSource(text=summary.source, class_name=summary.class_name, origin=summary.path)
    assert source.sha256 == summary.sha256
    return Program(graph=graph, kernels=(kernel,), reference=source, **dict(layout))


def test_a_stitched_program_equals_its_reference(tmp_path: Path, on_emulator: Any, assert_same: Any) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    program = asyncio.run(program_of(tmp_path, "model.py:Net"))
    files = render(program)
    assert read_bundle(files).reference == program.reference
    names: dict[str, Any] = {}
    exec(MODEL, names)
    torch.manual_seed(0)
    mine = on_emulator(files).ModelNew(3)
    torch.manual_seed(0)
    theirs = names["Net"](3)
    for seed in (1, 2):
        torch.manual_seed(seed)
        (pair,) = names["get_inputs"]()
        assert_same(mine(pair), theirs(pair), rtol=1e-6, atol=1e-6)
    assert_same(dict(mine.state_dict()), dict(theirs.state_dict()), rtol=1e-6, atol=1e-6)


def test_results_that_no_bundle_can_write_down_are_refused() -> None:
    with pytest.raises(Unencodable, match="a sort among its arguments or results"):
        structure_of([torch.zeros(3).sort()])
    assert structure_of({"a": (torch.zeros(1), None), "b": [1.5, "x"]}) == {
        "dict": {
            "a": {"tuple": ["tensor", {"value": None}]},
            "b": {"list": [{"value": 1.5}, {"value": "x"}]},
        }
    }
