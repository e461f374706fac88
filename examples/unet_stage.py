"""A decoder stage of a U-Net: transposed convolution, the skip connection joined on, two convolutions.

Sizes: with a GPU, the last stage at 256 x 256; without one, sizes for the CPU emulator.
``BATCH``, ``CHANNELS`` and ``SIZE`` set them.
"""

import torch
from torch import nn
from torch.nn import functional as F

BATCH, CHANNELS, SIZE = (8, 64, 128) if torch.cuda.is_available() else (2, 8, 6)


class Model(nn.Module):
    """``relu(conv(relu(conv(cat(skip, up(x))))))``."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(2 * channels, channels, 2, stride=2)
        self.first = nn.Conv2d(2 * channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor, skip: torch.Tensor) -> torch.Tensor:
        """(batch, 2 c, size, size) and (batch, c, 2 size, 2 size) -> (batch, c, 2 size, 2 size)."""
        joined = torch.cat([skip, self.up(x)], 1)
        return F.relu(self.second(F.relu(self.first(joined))))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, 2 * CHANNELS, SIZE, SIZE), torch.randn(BATCH, CHANNELS, 2 * SIZE, 2 * SIZE)]


def get_init_inputs() -> list[int]:
    return [CHANNELS]
