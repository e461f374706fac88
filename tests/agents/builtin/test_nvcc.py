"""nvcc takes what every kind of kernel is written as; the emulator's compiler is less strict."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from stitch_tui.agents.builtin import coder
from stitch_tui.agents.builtin.lower import lower
from stitch_tui.agents.builtin.planner import plan
from tests.agents.builtin.support import can_compile, traced

Tensor = torch.Tensor
HEADERS = Path(__file__).resolve().parents[3] / "tools" / "include"
IMAGES, MATRIX, VOLUME = torch.randn(2, 8, 12, 12), torch.randn(64, 64), torch.randn(2, 3, 6, 6, 6)


class Applied(nn.Module):
    """A function that may use one layer."""

    def __init__(self, function: Callable[..., Tensor], layer: nn.Module | None = None) -> None:
        super().__init__()
        self.function, self.layer = function, layer

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x) if self.layer is None else self.function(self.layer(x))


CASES: dict[str, tuple[nn.Module, Tensor]] = {
    "max pool": (Applied(lambda x: F.max_pool2d(x, 2)), IMAGES),
    "mean pool": (Applied(lambda x: F.avg_pool3d(x, 3, 2, 1)), VOLUME),
    "adaptive pool": (Applied(lambda x: F.adaptive_avg_pool2d(x, 5)), IMAGES),
    "convolution": (Applied(F.relu, nn.Conv2d(8, 32, 3)), IMAGES),
    "transposed convolution": (Applied(F.relu, nn.ConvTranspose2d(8, 32, 3, 2, 1, 1)), IMAGES),
    "depthwise convolution": (Applied(F.relu, nn.Conv2d(8, 8, 3, groups=8)), IMAGES),
    "batch norm": (Applied(F.relu, nn.BatchNorm2d(8)), IMAGES),
    "group norm": (Applied(F.relu, nn.GroupNorm(4, 8)), IMAGES),
    "layer norm": (Applied(F.gelu, nn.LayerNorm(12)), IMAGES),
    "softmax over channels": (Applied(lambda x: x.softmax(1)), IMAGES),
    "sum of all": (Applied(lambda x: x.sum()), torch.randn(300, 300)),
    "place of the largest": (Applied(lambda x: x.argmax(1)), MATRIX),
    "running sum": (Applied(lambda x: x.cumsum(1)), MATRIX),
    "running sum across rows": (Applied(lambda x: x.cumsum(0)), MATRIX),
    "concatenation": (Applied(lambda x: torch.cat([x, x * 2], 1)), IMAGES),
    "resampling": (Applied(lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear")), IMAGES),
    "product": (Applied(F.silu, nn.Linear(64, 64)), MATRIX),
    "half product": (Applied(F.silu, nn.Linear(64, 64).bfloat16()), MATRIX.bfloat16()),
    "pointwise": (Applied(lambda x: F.gelu(x) * 2), MATRIX.half()),
}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("name", CASES)
def test_nvcc_compiles_every_strategy(name: str, tmp_path: Path) -> None:
    module, x = CASES[name]
    graph = traced(module, x).graph
    for number, proposal in enumerate(plan(graph, "cuda").proposals):
        subtask = lower(graph, proposal.region)
        for tune in coder.strategies(subtask, "cuda"):
            path = tmp_path / f"{number}-{tune.name}.cu"
            source = coder.emit_source(graph, subtask, tune)
            if not can_compile(source):
                continue
            path.write_text(source)
            command = ["nvcc", "-std=c++17", "-arch=sm_90", "-cubin", "-o", str(tmp_path / "out")]
            done = subprocess.run(
                [*command, "-I", str(HEADERS), str(path)], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
