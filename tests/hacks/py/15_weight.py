import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 7)

    def forward(self, x):
        y = torch.relu(self.layer(x)), x.sum(1)
        self.layer.weight.mul_(0.999)
        return y
