"""A small image classifier in training mode: two stages of convolution, BatchNorm, ReLU, then logits.

Sizes: with a GPU, images of 64 x 64; without one, sizes for the CPU emulator.
``BATCH``, ``SIZE`` and ``WIDTH`` set them.
"""

import torch
from torch import nn
from torch.nn import functional as F

BATCH, SIZE, WIDTH = (256, 64, 64) if torch.cuda.is_available() else (2, 16, 8)
CLASSES = 10


class Model(nn.Module):
    """Convolutional stages and a linear head."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.first_norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.second_norm = nn.BatchNorm2d(2 * width)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images (batch, 3, size, size) -> logits (batch, classes)."""
        x = F.max_pool2d(F.relu(self.first_norm(self.first(x))), 2)
        x = F.relu(self.second_norm(self.second(x)))
        return self.head(x.mean((2, 3)))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, 3, SIZE, SIZE)]


def get_init_inputs() -> list[int]:
    return [WIDTH, CLASSES]
