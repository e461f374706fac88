"""A gated feed-forward block as in current language models, small enough for the CPU emulator.

``stitch --auto examples/gated_mlp.py`` stitches it; `.ci/setup demo` does so.
"""

import torch
from torch import nn

TOKENS, WIDTH, HIDDEN = 64, 128, 256


class Model(nn.Module):
    """``x + down(silu(gate(norm(x))) * up(norm(x)))`` on float32 tensors of shape (tokens, width)."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gate = nn.Linear(width, hidden)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = self.norm(x)
        return x + self.down(nn.functional.silu(self.gate(normed)) * self.up(normed))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(TOKENS, WIDTH)]


def get_init_inputs() -> list[int]:
    return [WIDTH, HIDDEN]
