"""relu(x w^T + b) as a target, and its C candidates built with the host compiler."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from stitch_tui.tools.worker.launch import Launch
from stitch_tui.tools.worker.slots import Slot

HERE = Path(__file__).parent
TOOLS = HERE.parents[2] / "tools"
REFERENCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(33, 7)

    def forward(self, x):
        return torch.relu(self.layer(x))

def get_inputs():
    return [torch.rand(40, 33)]

def get_init_inputs():
    return []
"""
"""The same as a program."""
ROWS = {"full": 24, "small_1": 5, "small_2": 1}


class LinearRelu:
    """24, 5 or 1 rows of 33 numbers, 7 outputs each."""

    def __init__(self) -> None:
        self.inputs = [
            Slot("x", "activation", torch.float32),
            Slot("p_weight", "parameter", torch.float32, "weight"),
            Slot("p_bias", "parameter", torch.float32, "bias"),
        ]
        self.outputs = [Slot("y", "activation", torch.float32)]
        self.ints, self.floats, self.random = list[int](), list[float](), list[str]()
        self.narrowed = set[str]()

    def draw(self, variant: str, seed: int) -> list[torch.Tensor]:
        weights = torch.Generator().manual_seed(0)
        inputs = torch.Generator().manual_seed(seed)
        return [
            torch.rand(ROWS[variant], 33, generator=inputs),
            torch.randn(7, 33, generator=weights),
            torch.randn(7, generator=weights),
        ]

    def repaired(self, variant: str, seed: int) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(seed)
        return [torch.randn(t.shape, generator=generator) for t in self.draw(variant, seed)]

    def evaluate(
        self, tensors: Sequence[torch.Tensor], precision: str, variant: str = "full"
    ) -> list[torch.Tensor]:
        x, weight, bias = [t.double() if precision == "f64" else t for t in tensors]
        return [torch.relu(x @ weight.T + bias)]

    def reduction(self, variant: str) -> int:
        return 33

    def operators(self) -> set[str]:
        return {"aten.linear.default", "aten.relu.default"}


def compiled(folder: Path, *defines: str) -> Path:
    """The C candidate with these defects, as a shared library."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = folder / f"{'_'.join(defines) or 'honest'}.so"
    command = [compiler, "-O1", "-w", "-shared", "-fPIC", f"-I{TOOLS / 'include'}"]
    source = HERE / "candidates" / "linear_relu.c"
    subprocess.run(
        [*command, *(f"-D{d}" for d in defines), str(source), "-o", str(library), "-lm"], check=True
    )
    return library


def host_launch(library: Path, deadline_s: float = 10.0) -> Launch:
    boot = TOOLS / "worker" / "boot.py"
    return Launch((sys.executable, str(boot), "runner", "host"), load=str(library), deadline_s=deadline_s)


def module_launch(source: Path) -> dict[str, object]:
    """The judge's ``runner`` for a ``ModelNew`` on the CPU."""
    boot = TOOLS / "worker" / "boot.py"
    argv = [sys.executable, str(boot), "module_runner", "cpu"]
    return {"argv": argv, "load": str(source), "module": True, "deadline_s": 60.0}
