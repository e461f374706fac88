import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 7)
        self.folded = None

    def forward(self, x):
        if self.folded is None:
            self.folded = self.layer.weight.detach().clone()
        return torch.relu(x @ self.folded.T + self.layer.bias), x.sum(1)
