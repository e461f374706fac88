"""The program that is profiled in the reference's place."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from stitch_tui.tools.bundle.parts import loader
from stitch_tui.tools.bundle.parts.replay import STITCH_PATIENCE, StitchReplay
from stitch_tui.tools.worker.forward import program_of, with_ranges
from stitch_tui.tools.worker.reference import Options, Reference

MODEL = """
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x):
        return self.norm(self.layer(x)){more}

def get_inputs():
    return [torch.rand(8, 16)]

def get_init_inputs():
    return [16]
"""


def test_a_program_is_constructed_like_its_reference_and_gets_its_weights(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL.format(name="Model", more=""))
    (tmp_path / "model_new.py").write_text(MODEL.format(name="ModelNew", more=" * 1"))
    reference = Reference.open(Options(tmp_path, "model.py", "", mode="eval", init_seed=7))
    program = program_of(reference, tmp_path / "model_new.py")
    assert not program.training
    x = torch.rand(8, 16)
    torch.testing.assert_close(program(x), reference.module(x), rtol=0, atol=0)


def test_each_call_of_a_kernel_has_a_range_with_its_subtasks_name() -> None:
    said: list[str] = []

    class StitchBinding(loader.StitchBinding):
        def __call__(self, scratch: Any, *tensors: torch.Tensor) -> list[torch.Tensor]:
            said.append(f"run {self.kernel.id}")
            return [1 / tensors[0]] if len(tensors) else [1 / 0]  # type: ignore[list-item]

    def binding(name: str) -> StitchBinding:
        kernel: Any = SimpleNamespace(id=name, inputs=(), outputs=())
        return StitchBinding(kernel, None, torch.device("cpu"))

    with_ranges(SimpleNamespace(StitchBinding=StitchBinding), said.append, lambda: said.append("pop"))
    assert binding("s01")(None, torch.ones(1)) == [torch.ones(1)]
    with pytest.raises(ZeroDivisionError):
        binding("s02")(None)
    assert said == ["s01", "run s01", "pop", "s02", "run s02", "pop"]
    with_ranges(None, said.append, said.clear)  # a reference, which has no kernels of ours


def test_a_traced_program_is_launched_step_by_step() -> None:
    class Replay(StitchReplay):
        pass

    with_ranges(
        SimpleNamespace(StitchBinding=type("B", (loader.StitchBinding,), {}), StitchReplay=Replay), *[str] * 2
    )
    replay, runs = Replay(torch.device("cpu"), 0), list[int]()
    for _ in range(STITCH_PATIENCE + 3):
        replay("weights", lambda _: runs.append(1), [], [])
    assert len(runs) == STITCH_PATIENCE + 3
