"""The bundle as a user runs it: torch, a GPU, nvcc, and nothing of stitch."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from host_programs import graphed

from stitch_tui.tools.bundle import host_text, render, single_file

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc"),
]


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
