"""Maximum, mean and adaptive pooling, one after the other."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        """(batch, channels, height, width) -> (batch, channels)."""
        x = F.relu(F.max_pool2d(x, 3, stride=2, padding=1, ceil_mode=True))
        x = F.avg_pool2d(x, 2, padding=1, count_include_pad=False) * 0.5
        x = F.adaptive_avg_pool2d(x, (3, 2)) + 1
        return F.adaptive_avg_pool2d(x, 1).flatten(1).sigmoid()


def get_inputs():
    return [torch.randn(2, 3, 19, 22)]


def get_init_inputs():
    return []
