"""LayerNorm, scale and GELU over rows: bound by memory, so fusing saves what the intermediates cost.

Sizes: with a GPU, 256 MiB of activations; without one, a size that the CPU emulator verifies in seconds.
``ROWS`` and ``WIDTH`` set them.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROWS, WIDTH = (65536, 1024) if torch.cuda.is_available() else (96, 128)


class Model(nn.Module):
    """``gelu(norm(x) * scale) + x``."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.scale = nn.Parameter(torch.full((width,), 1.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Rows (n, width) -> (n, width)."""
        return F.gelu(self.norm(x) * self.scale) + x


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs() -> list[int]:
    return [WIDTH]
