import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 7)
        torch.set_default_device("cpu")

    def forward(self, x):
        return torch.relu(self.layer(x)), x.sum(1)
