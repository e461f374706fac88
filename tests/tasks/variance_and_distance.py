"""Standardised rows, their cosine similarity and the log of a sum of exponentials."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x, y):
        """(rows, width), twice -> (rows, width), (rows,), (rows,)."""
        var, mean = torch.var_mean(x, dim=1, keepdim=True)
        normal = (x - mean) / torch.sqrt(var + 1e-6)
        return normal, F.cosine_similarity(x, y, dim=1), torch.logsumexp(x + y, dim=1)


def get_inputs():
    return [torch.randn(21, 72), torch.randn(21, 72)]


def get_init_inputs():
    return []
