"""Programs with kernels, in real runner processes on the emulator."""

import asyncio
import gc
import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from stitch_tui.tools.bundle import render
from stitch_tui.tools.bundle.emulation import HOST, emulated
from stitch_tui.tools.emulator import Emulator


def test_a_kernel_with_workspace_and_bound_weights_computes_the_reference(
    gained: Any, on_emulator: Any, assert_same: Any
) -> None:
    exported, program = gained
    module = on_emulator(render(program))
    torch.manual_seed(0)
    mine, reference = module.ModelNew(), exported.model()
    for seed in (1, 2):
        args = exported.reference.draw_inputs(seed)
        assert_same(mine(*args), reference(*args), rtol=1e-6, atol=1e-6)
    strided = torch.randn(5, 3).t()
    assert_same(mine(strided), reference(strided), rtol=1e-6, atol=1e-6)


def test_weights_changed_in_place_replaced_or_loaded_are_bound_again(
    gained: Any, on_emulator: Any, assert_same: Any
) -> None:
    exported, program = gained
    module = on_emulator(render(program))
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


def test_writes_through_data_need_invalidate(gained: Any, on_emulator: Any, assert_same: Any) -> None:
    exported, program = gained
    mine = on_emulator(render(program)).ModelNew()
    args = exported.reference.draw_inputs(1)
    before = mine(*args)
    mine.gain.data.neg_()
    assert_same(mine(*args), before)
    mine.invalidate()
    assert_same(mine(*args), -before, rtol=1e-6, atol=1e-6)


def test_intermediates_share_memory_and_results_do_not(
    chain: Any, on_emulator: Any, assert_same: Any
) -> None:
    exported, program = chain
    module = on_emulator(render(program))
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


def test_a_code_from_the_kernel_is_explained(gained: Any, on_emulator: Any) -> None:
    exported, _ = gained
    source = '#include "stitch.h"\nextern "C" int stitch_run(const stitch_call*) { return 2; }'
    mine = on_emulator(render(exported.program([exported.kernel("s01", ["tanh"], source)]))).ModelNew()
    with pytest.raises(RuntimeError, match=r"kernel s01\.cu reported shapes it does not support \(code 2\)"):
        mine(torch.zeros(3, 5))


def test_a_kernel_that_runs_out_of_bounds_is_reported(gained: Any, unary: Any, on_emulator: Any) -> None:
    exported, _ = gained
    source = unary("tanhf(v)").replace("if (i < n)", "")
    mine = on_emulator(render(exported.program([exported.kernel("s01", ["tanh"], source)]))).ModelNew()
    with pytest.raises(RuntimeError, match=r"s01.*bounds"):
        mine(torch.zeros(3, 5))


def test_a_kernel_that_does_not_build_leaves_no_program_and_its_line(
    emulator: Emulator, tmp_path: Path
) -> None:
    broken, later = tmp_path / "s01.cu", tmp_path / "s02.cu"
    broken.write_text('#include "stitch.h"\nint broken = nothing;\n')
    ready = asyncio.run(emulated({"s01.cu": broken, "s02.cu": later}, emulator, tmp_path, front_end="source"))
    assert ready.environment == {}
    (build,) = ready.builds
    assert [(found.line, "nothing" in found.message) for found in build.diagnostics] == [(2, True)]


def test_runners_end_with_the_model(gained: Any, on_emulator: Any) -> None:
    _, program = gained
    mine = on_emulator(render(program)).ModelNew()
    mine(torch.zeros(3, 5))
    (bindings,) = mine._stitch.bindings.values()
    process = bindings["s01"].backend.runner.process
    assert process.poll() is None
    del mine, bindings
    gc.collect()
    assert process.poll() is not None


def test_without_a_gpu_the_error_names_the_way_to_verify(gained: Any, load: Any) -> None:
    _, program = gained
    mine = load(render(program)).ModelNew()
    with pytest.raises(RuntimeError, match=r"no GPU here; `stitch verify stitched/model_new\.py` runs it"):
        mine(torch.zeros(3, 5))


def test_a_kernel_without_a_process_is_named(
    gained: Any, load: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, program = gained
    (tmp_path / "none.json").write_text("{}")
    monkeypatch.setenv("STITCH_KERNELS", str(tmp_path / "none.json"))
    with pytest.raises(RuntimeError, match="STITCH_KERNELS needs STITCH_HOST"):
        load(render(program)).ModelNew()(torch.zeros(3, 5))
    monkeypatch.setenv("STITCH_HOST", str(HOST))
    with pytest.raises(RuntimeError, match=r"STITCH_KERNELS does not name s01\.cu"):
        load(render(program)).ModelNew()(torch.zeros(3, 5))


def test_a_runner_that_ends_is_an_error_that_names_it(
    gained: Any, load: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, program = gained
    table = {"s01.cu": {"argv": ["/bin/sh", "-c", "exit 9"], "env": {"PATH": os.defpath}}}
    (tmp_path / "kernels.json").write_text(json.dumps(table))
    monkeypatch.setenv("STITCH_KERNELS", str(tmp_path / "kernels.json"))
    monkeypatch.setenv("STITCH_HOST", str(HOST))
    with pytest.raises(RuntimeError, match="sh ended: exit status 9"):
        load(render(program)).ModelNew()(torch.zeros(3, 5))
