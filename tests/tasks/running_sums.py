"""Masked, reversed and plain running sums and products."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, mask):
        """(batch, steps, width), twice -> three of them."""
        reverse = torch.flip(torch.cumsum(torch.flip(x, (1,)), dim=1), (1,))
        return torch.cumsum(x * mask, dim=2), reverse * 0.5, torch.cumprod(1 + 0.01 * x, dim=1)


def get_inputs():
    return [torch.randn(3, 21, 40), torch.rand(3, 21, 40) > 0.5]


def get_init_inputs():
    return []
