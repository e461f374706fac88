"""A small task for timing the Verifier itself: bias, GELU (tanh) and a scale over 4096 x 4096 elements."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width: int, scale: float) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.gelu(x + self.bias, approximate="tanh") * self.scale


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4096, 4096)]


def get_init_inputs() -> list[float]:
    return [4096, 0.5]
