"""The bundle as a user runs it: torch, a GPU, nvcc, and nothing of stitch."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from host_programs import graphed

from stitch_tui.tools.bundle import host_text, render, single_file
from stitch_tui.tools.bundle.parts.replay import StitchReplay

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc"),
]

NORM = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(5, momentum=0.3)
    def forward(self, x):
        return F.relu(self.norm(x))
def get_inputs():
    return [torch.randn(3, 5)]
"""
DRAWN = """
class Model(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5, training=True)
def get_inputs():
    return [torch.randn(3, 5)]
"""


@pytest.fixture
def on_gpu(load: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The module of a bundle, with a cache of its own."""

    def make(files: Mapping[str, bytes]) -> Any:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.delenv("STITCH_KERNELS", raising=False)
        return load(files)

    return make


def pair(module: Any, exported: Any) -> tuple[torch.nn.Module, torch.nn.Module]:
    torch.manual_seed(0)
    return module.ModelNew().cuda(), exported.model().cuda()


def test_a_program_with_bound_weights_equals_the_reference(
    gained: Any, on_gpu: Any, assert_same: Any
) -> None:
    exported, program = gained
    mine, reference = pair(on_gpu(render(program)), exported)
    for _ in range(3):
        x = torch.randn(3, 5, device="cuda")
        assert_same(mine(x), reference(x), rtol=1e-5, atol=1e-6)
        assert_same(mine(x.t().contiguous().t()), reference(x), rtol=1e-5, atol=1e-6)
        with torch.no_grad():
            mine.gain.mul_(-3)
            reference.gain.mul_(-3)
    unaligned = torch.randn(16, device="cuda")[1:].view(3, 5)
    assert_same(mine(unaligned), reference(unaligned), rtol=1e-5, atol=1e-6)


def test_intermediates_are_safe_across_streams_and_calls(chain: Any, on_gpu: Any, assert_same: Any) -> None:
    exported, program = chain
    mine, reference = pair(on_gpu(render(program)), exported)
    streams = [torch.cuda.Stream() for _ in range(3)]
    inputs = [torch.randn(3, 5, device="cuda") for _ in streams]
    results = []
    torch.cuda.synchronize()
    for stream, x in zip(streams, inputs, strict=True):
        with torch.cuda.stream(stream):
            results.append(mine(x))
    torch.cuda.synchronize()
    for x, result in zip(inputs, results, strict=True):
        assert_same(result, reference(x), rtol=1e-5, atol=1e-6)


def test_a_program_is_captured_in_a_cuda_graph(gained: Any, on_gpu: Any, assert_same: Any) -> None:
    exported, program = gained
    mine, reference = pair(on_gpu(render(program)), exported)
    x = torch.randn(3, 5, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="call the model once before capturing"), torch.cuda.graph(graph):
        mine(x)
    mine(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = mine(x)
    x.copy_(torch.randn(3, 5))
    graph.replay()
    assert_same(y, reference(x), rtol=1e-5, atol=1e-6)


def test_a_model_on_the_cpu_is_told_to_move(gained: Any, on_gpu: Any) -> None:
    _, program = gained
    mine = on_gpu(render(program)).ModelNew()
    with pytest.raises(RuntimeError, match="move model and inputs from cpu to cuda"):
        mine(torch.zeros(3, 5))
    with pytest.raises(RuntimeError, match=r"gain: this program is for .* on cuda:0, got .* on cpu"):
        mine(torch.zeros(3, 5, device="cuda"))


def test_the_single_file_runs(
    gained: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, assert_same: Any
) -> None:
    exported, program = gained
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    names: dict[str, Any] = {"__name__": "kernelbench"}
    exec(single_file(render(program)), names)
    torch.manual_seed(0)
    mine, reference = names["ModelNew"]().cuda(), exported.model().cuda()
    x = torch.randn(3, 5, device="cuda")
    assert_same(mine(x), reference(x), rtol=1e-5, atol=1e-6)


def replaying(module: Any, model: Any) -> None:
    """Have `module` keep any graph, and call `model`'s program until it does."""
    module.STITCH_GAIN = float("inf")
    for _ in range(module.STITCH_PATIENCE):
        model(torch.randn(3, 5, device="cuda"))
    (replay,) = model._stitch.replays.values()
    assert replay.graph is not None


def test_a_replayed_program_equals_the_reference(gained: Any, on_gpu: Any, assert_same: Any) -> None:
    exported, program = gained
    module = on_gpu(render(program))
    mine, reference = pair(module, exported)
    replaying(module, mine)
    inputs = [torch.randn(3, 5, device="cuda") for _ in range(4)]
    results = [mine(x) for x in inputs]
    for x, result in zip(inputs, results, strict=True):
        assert_same(result, reference(x), rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        mine.gain.mul_(-3)
        reference.gain.mul_(-3)
    assert_same(mine(inputs[0]), reference(inputs[0]), rtol=1e-5, atol=1e-6)
    assert_same(mine(inputs[1].t().contiguous().t()), reference(inputs[1]), rtol=1e-5, atol=1e-6)


def test_a_graph_counts_each_call_once(case: Any, on_gpu: Any, assert_same: Any) -> None:
    exported = case(NORM)
    module = on_gpu(render(exported.program([])))
    mine, reference = pair(module, exported)
    module.STITCH_GAIN = float("inf")
    for number in range(6):
        torch.manual_seed(number)
        x = torch.randn(3, 5, device="cuda")
        with torch.no_grad():
            assert_same(mine(x), reference(x), rtol=1e-5, atol=1e-6)
        assert_same(dict(mine.state_dict()), dict(reference.state_dict()), rtol=1e-5, atol=1e-6)
    (replay,) = mine._stitch.replays.values()
    assert replay.graph is not None


def test_a_program_that_draws_is_launched_step_by_step(case: Any, on_gpu: Any) -> None:
    exported = case(DRAWN)
    module = on_gpu(render(exported.program([])))
    mine, _ = pair(module, exported)
    for _ in range(4):
        mine(torch.randn(3, 5, device="cuda"))
    assert not mine._stitch.replays


def test_a_host_program_that_replays_a_graph_equals_the_reference(
    gained: Any, on_gpu: Any, assert_same: Any
) -> None:
    """Weights that change in place are packed anew, and results stay when the next call is made."""
    exported, program = gained
    replayed = program.model_copy(update={"host": graphed(host_text(program))})
    mine, reference = pair(on_gpu(render(replayed)), exported)
    kept = []
    for _ in range(3):
        for _ in range(3):
            x = torch.randn(3, 5, device="cuda")
            kept.append((mine(x), reference(x)))
        assert mine.graph is not None
        with torch.no_grad():
            mine.gain.mul_(-3)
            reference.gain.mul_(-3)
    for found, wanted in kept:
        assert_same(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_capture_that_fails_leaves_the_callers_stream_current() -> None:
    device, own = torch.device("cuda", 0), torch.cuda.current_stream()
    replay = StitchReplay(device, 16)
    with pytest.warns(UserWarning, match="cannot be captured"):
        replay.consider(lambda tensors, scratch=None: tensors[0].sum().item(), [torch.ones(4, device=device)])
    assert torch.cuda.current_stream() == own
