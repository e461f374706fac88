"""A post-norm attention block: one projection to q, k, v, attention, output projection, residual, LayerNorm.

The built-in Coder has no attention template yet: ``scaled_dot_product_attention`` stays with PyTorch, and the
plan says so and shows the coverage that is left.

Sizes: with a GPU, a layer of a mid-sized transformer; without one, sizes for the CPU emulator.
``BATCH``, ``TOKENS``, ``WIDTH`` and ``HEADS`` set them.
"""

import torch
from torch import nn
from torch.nn import functional as F

BATCH, TOKENS, WIDTH, HEADS = (8, 1024, 1024, 16) if torch.cuda.is_available() else (2, 32, 64, 4)


class Model(nn.Module):
    """``norm(x + project(attention(qkv(x))))``."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Tokens (batch, n, width) -> (batch, n, width)."""
        batch, tokens, width = x.shape
        packed = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = packed.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v)
        joined = mixed.transpose(1, 2).reshape(batch, tokens, width)
        return self.norm(x + self.project(joined))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, TOKENS, WIDTH)]


def get_init_inputs() -> list[int]:
    return [WIDTH, HEADS]
