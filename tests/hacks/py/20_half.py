import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 7)

    def forward(self, x):
        w = self.layer.weight.bfloat16().float()
        return torch.relu(x.bfloat16().float() @ w.T + self.layer.bias), x.sum(1)
