import torch
from model import Model as Other
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 7)
        self.inner = Other(width)

    def forward(self, x):
        return torch.relu(self.layer(x)), x.sum(1)
