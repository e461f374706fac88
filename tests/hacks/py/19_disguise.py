import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

op = load_inline("op", cpp_sources="", cuda_sources="", functions=["relu"])


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 7)

    def forward(self, x):
        y = x @ self.layer.weight.T + self.layer.bias
        return op.relu(y), torch.ops.aten.sum(x, [1])
