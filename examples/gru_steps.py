"""A gated recurrent unit written out, unrolled over a few steps: two products a step, gates in one kernel.

Sizes: with a GPU, those of a speech model; without one, sizes for the CPU emulator.
``STEPS``, ``BATCH`` and ``WIDTH`` set them.
"""

import torch
from torch import nn

STEPS, BATCH, WIDTH = (16, 256, 1024) if torch.cuda.is_available() else (2, 4, 16)


class Model(nn.Module):
    """Inputs (steps, batch, width) and a state (batch, width) -> the last state."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.of_input = nn.Linear(width, 3 * width)
        self.of_state = nn.Linear(width, 3 * width)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        gates = self.of_input(x)
        for step in range(x.shape[0]):
            reset_x, update_x, new_x = gates[step].chunk(3, -1)
            reset_h, update_h, new_h = self.of_state(state).chunk(3, -1)
            reset = torch.sigmoid(reset_x + reset_h)
            update = torch.sigmoid(update_x + update_h)
            candidate = torch.tanh(new_x + reset * new_h)
            state = candidate + update * (state - candidate)
        return state


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(STEPS, BATCH, WIDTH), torch.randn(BATCH, WIDTH)]


def get_init_inputs() -> list[int]:
    return [WIDTH]
