"""A block of a vision transformer: pre-norm attention written out, and a pre-norm MLP, both with residuals.

Sizes: with a GPU, ViT-Base; without one, sizes for the CPU emulator.
``BATCH``, ``TOKENS``, ``WIDTH`` and ``HEADS`` set them.
"""

import torch
from torch import nn
from torch.nn import functional as F

BATCH, TOKENS, WIDTH, HEADS = (64, 197, 768, 12) if torch.cuda.is_available() else (2, 9, 32, 2)


class Model(nn.Module):
    """``x + attention(norm(x))``, then ``x + mlp(norm(x))``."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.mlp_norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Tokens (batch, n, width) -> (batch, n, width)."""
        batch, tokens, width = x.shape
        packed = self.qkv(self.attention_norm(x)).view(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = packed.permute(2, 0, 3, 1, 4).unbind(0)
        scores = torch.softmax(q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5, dim=-1)
        mixed = (scores @ v).transpose(1, 2).reshape(batch, tokens, width)
        x = x + self.project(mixed)
        return x + self.down(F.gelu(self.up(self.mlp_norm(x))))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, TOKENS, WIDTH)]


def get_init_inputs() -> list[int]:
    return [WIDTH, HEADS]
