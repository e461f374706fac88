"""A batch norm in training mode, written by the built-in Coder, in a whole program with its buffers."""

from typing import Any

import torch

from stitch_tui.agents.builtin.coder import BuiltinCoder
from stitch_tui.agents.builtin.planner import plan
from stitch_tui.tools.bundle import Kernel, render

BLOCK = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(5, momentum=0.3)
    def forward(self, x, y):
        return F.relu(self.norm(x + y)).mean((2, 3))
def get_inputs():
    return [torch.randn(3, 5, 4, 6), torch.randn(3, 5, 4, 6)]
"""


def test_a_batch_norm_block_equals_its_module_with_its_running_statistics(
    case: Any, on_emulator: Any, assert_same: Any
) -> None:
    block = case(BLOCK)
    cut = plan(block.graph)
    assert not cut.leftovers
    kernels = []
    for number, proposal in enumerate(cut.proposals):
        candidate = BuiltinCoder().attempt(block.graph, proposal.region, 0)
        assert candidate
        kernels.append(
            Kernel(id=f"s{number:02d}", title=proposal.title, region=proposal.region, source=candidate.source)
        )
    theirs = block.model()
    torch.manual_seed(0)
    mine = on_emulator(render(block.program(kernels))).ModelNew()
    for seed in (1, 2, 3):
        torch.manual_seed(seed)
        x, y = torch.randn(3, 5, 4, 6), torch.randn(3, 5, 4, 6) + seed
        with torch.no_grad():
            assert_same(mine(x, y), theirs(x, y), rtol=1e-5, atol=1e-5)
        assert_same(dict(mine.state_dict()), dict(theirs.state_dict()), rtol=1e-5, atol=1e-6)
    assert int(mine.state_dict()["norm.num_batches_tracked"]) == 3
