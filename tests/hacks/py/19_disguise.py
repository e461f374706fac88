import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.where(value < 0, 0.0, value), mask=at < n)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 7)

    def forward(self, x):
        product = x @ self.layer.weight.T + self.layer.bias
        y = torch.empty_like(product)
        relu[(product.numel() + 127) // 128,](product, y, product.numel(), BLOCK=128)
        return y, torch.ops.aten.sum(x, [1])
