"""A host program of a Coder's, judged as the program of a bundle: right at every call, by its kernels."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from host_programs import fallen_back, fallen_back_later, graphed, misbehaving, written_over

from stitch_tui.agents.host.contract import contract
from stitch_tui.tools import reference
from stitch_tui.tools.bundle import Kernel, Program, ReferenceSource, host_text, read_layout, render
from stitch_tui.tools.emulator import Emulator
from stitch_tui.tools.graph import region_of
from stitch_tui.tools.judge import Judge
from stitch_tui.tools.verdict import Category, Verdict
from stitch_tui.tools.verification import Bench, verify_program

REFERENCE = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.full((16,), 2.0))
    def forward(self, x): return torch.relu(x) * self.w
def get_inputs(): return [torch.randn(4, 16)]
def get_init_inputs(): return []
"""
RELU = """
#include "stitch.h"
__global__ void relu(const float* x, float* y, int64_t n) {
  const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
extern "C" int stitch_run(const stitch_call* c) {
  const int64_t n = c->in[0].numel;
  relu<<<(n + 31) / 32, 32, 0, (cudaStream_t)c->stream>>>(
      (const float*)c->in[0].data, (float*)c->out[0].data, n);
  return STITCH_OK;
}
"""
CALL = '(relu,) = kernel("s01", x)'
OPERATORS = "relu = aten.relu.default(x)"


@dataclass
class Bundles:
    """One program, with a host program of choice."""

    program: Program
    folder: Path

    def written(self, name: str, host: str = "") -> Path:
        """The ``model_new.py`` of its bundle."""
        for path, data in render(self.program.model_copy(update={"host": host})).items():
            target = self.folder / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return self.folder / name / "model_new.py"


Hosts = Callable[[str], dict[str, str]]
"""Host programs by their names, made from the one that stitch writes."""


async def judged(folder: Path, emulator: Emulator, hosts: Hosts, deadline_s: float) -> dict[str, Verdict]:
    (folder / "model.py").write_text(REFERENCE)
    async with Judge(sys.executable, folder) as judge:
        summary = await reference.open_reference(judge, reference.ReferenceOptions(path="model.py"))
        graph = (await reference.graph(judge)).graph
        relu = next(node.id for node in graph.nodes if node.op.startswith("aten.relu"))
        program = Program(
            graph=graph,
            kernels=(Kernel(id="s01", title="relu", region=region_of(graph, [relu]), source=RELU),),
            reference=ReferenceSource(text=summary.source, class_name=summary.class_name),
            **dict(await read_layout(judge)),
        )
        bundles, own = Bundles(program, folder), host_text(program)
        bench = Bench(judge, emulator, python=sys.executable, deadline_s=deadline_s)
        replaced = bundles.written("replaced")
        found = {}
        for name, host in hosts(own).items():
            module = bundles.written(name, host)
            kernels = {"s01.cu": module.parent / "kernels" / "s01.cu"}
            found[name] = await verify_program(bench, module, kernels, replaces=replaced)
        return found


def falling_back(own: str) -> dict[str, str]:
    return {
        "graphed": graphed(own),
        "fallen back": fallen_back(own, CALL, OPERATORS),
        "fallen back later": fallen_back_later(own, CALL, OPERATORS),
        "written over": written_over(own),
    }


@pytest.mark.slow
def test_a_program_that_lets_torch_do_a_kernels_work_is_found_by_leaving_the_kernel_out(
    tmp_path: Path, emulator: Emulator
) -> None:
    verdicts = asyncio.run(judged(tmp_path, emulator, falling_back, 20.0))
    assert verdicts["graphed"].correct, verdicts["graphed"].summary
    fallen = verdicts["fallen back"]
    assert fallen.category is Category.HACK_SUSPECTED
    (finding,) = fallen.findings
    assert finding.message == "the result does not come from s01.cu: without that kernel it is still right"
    later = verdicts["fallen back later"]
    assert [f.message for f in later.findings] == [finding.message], later.summary
    over = verdicts["written over"]
    assert over.category is Category.HACK_SUSPECTED
    assert "wrote over the result of the call before" in over.findings[0].message


def within_the_contract(own: str) -> dict[str, str]:
    hosts = misbehaving(own, CALL)
    assert {name: contract(host, own) for name, host in hosts.items()} == {name: [] for name in hosts}
    return hosts


FOUND = {
    "hangs": (Category.HANG, "no answer within"),
    "hangs later": (Category.HANG, "no answer within"),
    "writes over its input": (Category.HACK_SUSPECTED, "input x was modified"),
    "writes over a weight": (Category.HACK_SUSPECTED, "parameter w was modified in forward"),
    "returns the first call's": (Category.NUMERICS, "equal to the previous call's result"),
    "returns the call's before": (Category.NUMERICS, "equal to the previous call's result"),
    "is right the first time": (Category.NUMERICS, "elements are wrong"),
    "is right at every other call": (Category.NUMERICS, "elements are wrong"),
    "knows inputs by their address": (Category.NUMERICS, "elements are wrong"),
}


@pytest.mark.slow
def test_what_keeps_the_contract_and_does_wrong_is_found_by_running_it(
    tmp_path: Path, emulator: Emulator
) -> None:
    verdicts = asyncio.run(judged(tmp_path, emulator, within_the_contract, 5.0))
    assert {name: verdict.category for name, verdict in verdicts.items()} == {
        name: category for name, (category, _) in FOUND.items()
    }
    for name, (_, said) in FOUND.items():
        assert said in verdicts[name].summary, verdicts[name].summary
