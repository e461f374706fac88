import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 7)
        torch.nn.modules.module.register_module_forward_hook(lambda m, i, o: o)

    def forward(self, x):
        return torch.relu(self.layer(x)), x.sum(1)
