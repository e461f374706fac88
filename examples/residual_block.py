"""A residual block of an image network in training mode: convolution, BatchNorm, ReLU, twice, and a shortcut.

BatchNorm updates its running statistics, so the program has results beside its output.

Sizes: with a GPU, a middle stage of a ResNet; without one, sizes for the CPU emulator.
``BATCH``, ``CHANNELS`` and ``SIZE`` set them.
"""

import torch
from torch import nn
from torch.nn import functional as F

BATCH, CHANNELS, SIZE = (32, 256, 28) if torch.cuda.is_available() else (2, 16, 8)


class Model(nn.Module):
    """``relu(x + norm(conv(relu(norm(conv(x))))))``."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images (batch, channels, size, size) -> the same shape."""
        inner = F.relu(self.first_norm(self.first(x)))
        return F.relu(x + self.second_norm(self.second(inner)))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[int]:
    return [CHANNELS]
