"""Random programs of pointwise and row operators, as the Planner fuses them, against float64."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stitch_tui.agents.builtin import coder
from stitch_tui.agents.builtin.lower import lower
from stitch_tui.agents.builtin.planner import plan
from stitch_tui.tools.emulator import Emulator, Mode
from tests.agents.builtin.support import check, traced

Tensor = torch.Tensor
UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "tanh": torch.tanh,
    "neg": torch.neg,
    "root": lambda x: (x.abs() + 1).sqrt(),
    "clamped": lambda x: x.clamp(-1, 1),
    "positive": lambda x: torch.where(x > 0, x, 0.1 * x),
}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "maximum": torch.maximum,
}
ROWS: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": lambda x: x.softmax(-1),
    "mean": lambda x: x.mean(-1, keepdim=True),
    "largest": lambda x: x.amax(-1, keepdim=True),
    "rms": lambda x: x * (x.pow(2).mean(-1, keepdim=True) + 1e-3).rsqrt(),
    "norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "variance": lambda x: x.var(-1, correction=0, keepdim=True),
}
EXTENTS = st.sampled_from([1, 2, 3, 5, 7, 16, 31, 64, 129])


@dataclass(frozen=True)
class Step:
    """An operator and which of the values so far it takes."""

    name: str
    operands: tuple[int, ...]


Fused = tuple[tuple[Step, ...], list[tuple[int, ...]]]
"""Steps, and the shapes of the inputs: one whole, one with a number for each row, one that repeats."""


class Composed(torch.nn.Module):
    """Runs steps on its inputs; the result is the last value."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, *inputs: Tensor) -> Tensor:
        values = list(inputs)
        for step in self.steps:
            function = (UNARY | BINARY | ROWS)[step.name]
            values.append(function(*[values[i] for i in step.operands]))
        return values[0] + values[-1]


@st.composite
def programs(draw: st.DrawFn) -> Fused:
    batch, rows, length = draw(EXTENTS), draw(EXTENTS), draw(EXTENTS)
    shapes = [(batch, rows, length), (batch, rows, 1), (length,)]
    steps: list[Step] = []
    for _ in range(draw(st.integers(2, 7))):
        table = draw(st.sampled_from([UNARY, BINARY, BINARY, ROWS]))
        name = draw(st.sampled_from(sorted(table)))
        known = len(shapes) + len(steps)
        count = 2 if table is BINARY else 1
        recent, any_value = st.integers(max(0, known - 3), known - 1), st.integers(0, known - 1)
        steps.append(Step(name, tuple(draw(source) for source in (recent, any_value)[:count])))
    return tuple(steps), shapes


def check_program(emulator: Emulator, folder: Path, program: Fused, strategies: int) -> None:
    """Each kernel that the Planner proposes, as the first and, if two are asked for, the last strategy."""
    steps, shapes = program
    torch.manual_seed(len(steps))
    case = traced(Composed(steps), *map(torch.randn, shapes))
    for proposal in plan(case.graph).proposals:
        known = [t.name for t in coder.strategies(lower(case.graph, proposal.region))]
        tunes, inputs = [known[0], known[-1]][:strategies], case.values_at(proposal.region)
        check(emulator, folder, case, [inputs], region=proposal.region, tunes=tunes, mode=Mode.FAST)


@settings(max_examples=1)
@given(program=programs())
def test_a_fused_program_is_as_exact_as_pytorch(
    emulator: Emulator, tmp_path_factory: pytest.TempPathFactory, program: Fused
) -> None:
    check_program(emulator, tmp_path_factory.mktemp("program"), program, 1)


@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(program=programs())
def test_many_fused_programs_are_as_exact_as_pytorch(
    emulator: Emulator, tmp_path_factory: pytest.TempPathFactory, program: Fused
) -> None:
    check_program(emulator, tmp_path_factory.mktemp("program"), program, 2)
