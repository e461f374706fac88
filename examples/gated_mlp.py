"""A gated MLP block of a language model: RMSNorm, gate and up projections, SiLU, down projection, residual.

Sizes: with a GPU, those of a small language model; without one, sizes that the whole loop of `stitch`
verifies on the CPU emulator in about a minute.  ``TOKENS``, ``WIDTH`` and ``HIDDEN`` set them.
"""

import torch
from torch import nn
from torch.nn import functional as F

TOKENS, WIDTH, HIDDEN = (4096, 2048, 5632) if torch.cuda.is_available() else (64, 64, 96)


class Model(nn.Module):
    """``x + down(silu(gate(norm(x))) * up(norm(x)))`` with the norm written out."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Tokens (n, width) -> (n, width)."""
        normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(TOKENS, WIDTH)]


def get_init_inputs() -> list[int]:
    return [WIDTH, HIDDEN]
