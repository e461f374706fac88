"""Pointwise chains: random programs over random broadcasts, strides, views and types, at awkward sizes."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from stitch_tui.agents.builtin import coder, emit
from stitch_tui.agents.builtin.ir import Kind
from stitch_tui.tools.emulator import Emulator, Mode
from tests.agents.builtin.support import check, run_source, traced
from tests.agents.builtin.test_operators import Many
from tests.tools.emulator.judge import Call

Tensor = torch.Tensor

OPS: list[Callable[[Tensor, Tensor], Tensor]] = [
    lambda x, y: x + y,
    lambda x, y: x * y,
    lambda x, y: x - 0.5 * y,
    lambda x, y: torch.maximum(x, y),
    lambda x, y: torch.minimum(x, -y),
    lambda x, y: F.gelu(x),
    lambda x, y: torch.sigmoid(y),
    lambda x, y: F.silu(x) * y,
    lambda x, y: torch.tanh(x + y),
    lambda x, y: F.softplus(x),
    lambda x, y: F.leaky_relu(x, 0.1),
    lambda x, y: x.clamp(-1, 1),
    lambda x, y: x / (1 + y * y),
]
Program = tuple[list[tuple[int, int, int]], list[tuple[bool, ...]], list[list[int]]]
EXTENTS = st.sampled_from([0, 1, 2, 3, 5, 7, 16, 31])


class Random(torch.nn.Module):
    """Steps over a growing list of values; the last one and a middle one of full size are results."""

    def __init__(self, steps: list[tuple[int, int, int]]) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, *operands: Tensor) -> list[Tensor]:
        whole = sum(operands[1:], operands[0])
        values = [whole, *operands]
        for op, left, right in self.steps:
            values.append(OPS[op](values[0], values[left % len(values)]) + values[right % len(values)])
        return [values[-1], values[len(values) // 2] + whole]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Steps, which dimensions each operand has (False: extent 1), and several full shapes."""
    rank = draw(st.integers(1, 4))
    index = st.integers(0, 30)
    steps = draw(st.lists(st.tuples(st.integers(0, len(OPS) - 1), index, index), min_size=1, max_size=6))
    masks = draw(st.lists(st.tuples(*[st.booleans()] * rank), min_size=1, max_size=3))
    shapes = draw(st.lists(st.lists(EXTENTS, min_size=rank, max_size=rank), min_size=2, max_size=4))
    return steps, [(True,) * rank, *masks], [*shapes, [5] * rank]


def operands(masks: list[tuple[bool, ...]], shape: list[int], *, leading: bool = True) -> list[Tensor]:
    """One tensor for each mask; without `leading`, dimensions of extent 1 in front are dropped."""
    tensors = []
    for mask in masks:
        extents = [n if there else 1 for n, there in zip(shape, mask, strict=True)]
        cut = 0 if leading else next((d for d, there in enumerate(mask) if there), len(mask) - 1)
        tensors.append(torch.randn(extents[cut:]))
    return tensors


def run_random(emulator: Emulator, folder: Path, program: Program, tune: str) -> None:
    steps, masks, shapes = program
    case = traced(Random(steps), *operands(masks, [3] * len(masks[0]), leading=False))
    cases = [operands(masks, shape, leading=False) for shape in shapes]
    subtask = check(emulator, folder, case, cases, tunes=[tune])
    assert subtask.kind is Kind.POINTWISE


CAREFUL = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@settings(CAREFUL, max_examples=3)
@given(programs())
def test_random_programs_agree_with_float64(emulator: Emulator, tmp_path: Path, program: Program) -> None:
    run_random(emulator, tmp_path, program, "vector")


@pytest.mark.slow
@pytest.mark.parametrize("tune", ["vector", "vector-small-blocks", "scalar"])
@settings(CAREFUL, max_examples=30)
@given(program=programs())
def test_many_random_programs_agree_with_float64(
    emulator: Emulator, tmp_path: Path, program: Program, tune: str
) -> None:
    run_random(emulator, tmp_path, program, tune)


def test_strided_inputs_and_results(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(Many([lambda x, y: F.gelu(x) * y]), torch.randn(3, 4, 5), torch.randn(4, 5))
    x = torch.randn(5, 8, 3).permute(2, 1, 0)[:, ::2]
    odd = torch.randn(3 * 4 * 8 + 1)[1:].view(3, 4, 8)  # contiguous, not aligned to a pack
    check(emulator, tmp_path, case, [[x, torch.randn(4, 5)], [odd, torch.randn(4, 8)]], tunes=["vector"])


def test_a_result_in_another_layout_is_written_there(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(Many([torch.relu]), torch.randn(6, 9))
    region = case.everything()
    source = coder.BuiltinCoder().attempt(case.graph, region, 0)
    assert source
    x = torch.randn(6, 9)
    call = Call([x], [torch.empty(9, 6).t()])
    (outcome,) = run_source(emulator, tmp_path, source.source, [call], Mode.FAST)
    assert torch.equal(outcome.outputs[0], x.relu())


def test_reshapes_inside_a_chain_are_free(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(
        Many([lambda x, y, b: torch.sigmoid((x * 2).view(6, 4) + y + b).view(2, 3, 4)]),
        *(torch.randn(2, 3, 4), torch.randn(6, 4), torch.randn(4)),
    )
    region = case.everything()
    check(emulator, tmp_path, case, [case.values_at(region)], tunes=["vector"])


@pytest.mark.parametrize(
    ("change", "rc"),
    [("rank", 3), ("dtype", 3), ("shape", 2)],
)
def test_a_call_that_does_not_fit_is_refused(
    emulator: Emulator, tmp_path: Path, change: str, rc: int
) -> None:
    case = traced(Many([torch.add]), torch.randn(3, 4), torch.randn(3, 4))
    candidate = coder.BuiltinCoder().attempt(case.graph, case.everything(), 0)
    assert candidate
    x = {"rank": torch.randn(4), "dtype": torch.ones(3, 4, dtype=torch.int32), "shape": torch.randn(3, 5)}
    call = Call([x[change], torch.randn(3, 4)], [torch.empty(3, 4)])
    (outcome,) = run_source(emulator, tmp_path, candidate.source, [call], Mode.FAST)
    assert outcome.rc == rc


def test_a_value_that_its_kernel_does_not_read_is_left_out_with_what_only_it_reads() -> None:
    kernel = """__global__ void {name}() {{
  const float v1 = 2.0f;
  const float v2 = v1 + 1.0f;
  y[0] = {result};
}}
"""
    source = "// v1\n" + kernel.format(name="one", result="v1") + kernel.format(name="other", result="0")
    left = emit.without_unused(source)
    one, other = left.split("__global__")[1:]
    assert "v1 = 2.0f" in one
    assert "v2" not in one
    assert "const" not in other
