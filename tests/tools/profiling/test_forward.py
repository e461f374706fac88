"""The program that is profiled in the reference's place."""

from pathlib import Path

import torch

from stitch_tui.tools.worker.forward import program_of
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
