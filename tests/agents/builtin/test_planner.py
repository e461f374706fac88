"""Cutting graphs into regions, and the attempts that the Coder makes at them."""

import importlib.util
import shutil
import subprocess
from collections.abc import Callable
from itertools import count, takewhile
from pathlib import Path
from types import ModuleType

import pytest
import torch
import torch.nn.functional as F

from stitch_tui.agents.builtin.coder import BuiltinCoder, Candidate, reduction_length
from stitch_tui.agents.builtin.planner import Cut, plan
from stitch_tui.tools.emulator import Emulator
from stitch_tui.tools.graph import Graph, Region
from stitch_tui.tools.roofline import Peaks
from tests.agents.builtin.support import Traced, can_compile, check, traced
from tests.agents.builtin.test_operators import Many

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted(p.stem for p in (ROOT / "examples").glob("*.py"))
Tensor = torch.Tensor


def example(name: str) -> Traced:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec
    assert spec.loader
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.manual_seed(0)
    return traced(module.Model(*module.get_init_inputs()), *module.get_inputs())


def titles(cut: Cut) -> set[str]:
    return {p.title for p in cut.proposals}


def attempts(graph: Graph, region: Region, device: str = "") -> list[Candidate]:
    tried = (BuiltinCoder().attempt(graph, region, n, device=device) for n in count())
    return [c for c in takewhile(lambda c: c is not None, tried) if c]


def plan_of(function: Callable[..., Tensor], *args: Tensor) -> Cut:
    return plan(traced(Many([function]), *args).graph)


def test_a_gated_mlp_becomes_a_norm_and_three_products() -> None:
    cut = plan(example("gated_mlp").graph)
    assert titles(cut) == {"rms_norm", "linear+silu+mul", "linear", "linear+add"}
    assert not cut.leftovers
    assert cut.coverage == pytest.approx(1)


def test_a_norm_with_its_neighbours_is_one_kernel() -> None:
    cut = plan(example("layernorm_gelu").graph)
    assert titles(cut) == {"layer_norm+mul+gelu+add"}


def test_gates_of_a_recurrent_unit_are_one_kernel_with_their_splits() -> None:
    cut = plan(example("gru_steps").graph)
    assert len([p for p in cut.proposals if "sigmoid" in p.title]) == 2  # one for each step
    assert cut.coverage == pytest.approx(1)


def test_batch_norms_of_a_training_step_follow_their_convolutions() -> None:
    cut = plan(example("residual_block").graph)
    assert {"conv2d", "batch_norm+relu", "batch_norm+add+relu"} <= titles(cut)
    assert cut.coverage == pytest.approx(1)


def test_attention_stays_with_pytorch_and_is_named_as_the_reason_for_less_coverage() -> None:
    cut = plan(example("attention_block").graph)
    assert titles(cut) == {"linear", "linear+add", "layer_norm"}
    assert 0 < cut.coverage < 1
    (missing,) = [left for left in cut.leftovers if left.share > 0]
    assert missing.op == "aten.scaled_dot_product_attention.default"
    assert missing.op in missing.reason


def test_regions_do_not_overlap_and_the_hottest_comes_first() -> None:
    cut = plan(example("gated_mlp").graph)
    nodes = [n for p in cut.proposals for n in p.region.nodes]
    assert len(nodes) == len(set(nodes))
    shares = [p.share for p in cut.proposals]
    assert shares == sorted(shares, reverse=True)
    assert all(p.amdahl == pytest.approx(1 / (1 - p.share)) for p in cut.proposals)


def test_regions_can_be_put_in_order_even_where_values_cross_between_chains() -> None:
    """Each chain alone is convex; fused together they would wait for each other."""

    def crossing(x: Tensor, w: Tensor) -> Tensor:
        a, b = x @ w, x @ w.t()
        c = F.relu(b) + a.cumsum(0)
        return F.relu(a) + b.cumsum(0) + c

    case = traced(Many([crossing]), torch.randn(4, 4), torch.randn(4, 4))
    groups = [set(p.region.nodes) for p in plan(case.graph).proposals]
    owner = {n: i for i, group in enumerate(groups) for n in group}
    edges = {
        (owner.get(o, o), owner.get(n.id, n.id))
        for n in case.graph.nodes
        for o in n.operands
        if o in case.graph.node and owner.get(o, o) != owner.get(n.id, n.id)
    }
    remaining = {v for edge in edges for v in edge}
    while ready := {v for v in remaining if not any(b == v and a in remaining for a, b in edges)}:
        remaining -= ready
    assert not remaining


def test_measured_times_decide_shares_and_a_machine_gives_bounds() -> None:
    graph = example("layernorm_gelu").graph
    timed = graph.model_copy(
        update={"nodes": tuple(n.model_copy(update={"time_us": 5.0}) for n in graph.nodes)}
    )
    (proposal,) = plan(timed, "cuda", Peaks(4e12, 50e12, 50e12, 50e12, 50e12, "a test")).proposals
    assert proposal.measured
    assert proposal.time_us == 5.0 * len(graph.nodes)
    assert proposal.amdahl == float("inf")
    assert proposal.bound_us
    assert proposal.bound_us > 0


def test_a_convolution_that_the_library_does_faster_is_left_and_its_neighbours_are_not() -> None:
    convolved = torch.nn.Sequential(torch.nn.Conv2d(64, 64, 3), torch.nn.ReLU(), torch.nn.Hardswish())
    graph = traced(convolved, torch.randn(1, 64, 34, 34)).graph
    peaks = Peaks(4e12, 50e12, 50e12, 50e12, 50e12, "a test")

    def cut(time_us: float) -> Cut:
        times = {n.id: time_us if "conv" in n.op else 1.0 for n in graph.nodes}
        nodes = tuple(n.model_copy(update={"time_us": times[n.id]}) for n in graph.nodes)
        return plan(graph.model_copy(update={"nodes": nodes}), "cuda", peaks)

    assert titles(cut(100.0)) == {"conv2d+relu+hardswish"}
    fast = cut(1.0)
    assert titles(fast) == {"relu+hardswish"}
    assert "library is faster" in fast.leftovers[0].reason
    alone = traced(convolved[0], torch.randn(1, 64, 34, 34)).graph
    timed = alone.model_copy(update={"nodes": (alone.nodes[0].model_copy(update={"time_us": 0.1}),)})
    assert titles(plan(timed, "cuda", peaks)) == {"conv2d"}


def test_a_counter_is_left_to_pytorch_on_a_gpu() -> None:
    graph = traced(torch.nn.BatchNorm2d(3), torch.randn(2, 3, 4, 4)).graph
    assert titles(plan(graph)) == {"batch_norm", "add"}
    cut = plan(graph, "cuda")
    assert titles(cut) == {"batch_norm"}
    assert cut.leftovers[-1].reason == "a few numbers: one launch, whoever's it is"


def test_what_has_no_template_is_left_with_a_reason() -> None:
    cut = plan_of(lambda x: torch.erfinv(torch.sort(x)[0]).cumsum(0) + 1, torch.randn(5))
    assert titles(cut) == {"cumsum+add"}
    assert {left.op for left in cut.leftovers} == {"aten.sort.default", "getitem", "aten.erfinv.default"}
    assert any("no template" in left.reason for left in cut.leftovers)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.dropout(x, 0.5, training=True),
        lambda x: x.double() + 1,
        lambda x: x.flatten() @ x.flatten(),
        lambda x: torch.linalg.norm(x, ord="nuc"),
        lambda x: F.softmax(x, 0) + F.softmax(x, 1),
    ],
)
def test_cases_outside_a_templates_reach_are_refused(function: Callable[[Tensor], Tensor]) -> None:
    case = traced(Many([function]), torch.randn(3, 4))
    assert BuiltinCoder().attempt(case.graph, case.everything(), 0) is None


def test_a_small_value_is_not_computed_again_at_every_point() -> None:
    cut = plan_of(lambda x, b: x + torch.tanh(b), torch.randn(64, 32), torch.randn(32))
    assert titles(cut) == {"add", "tanh"}


def test_a_row_sum_takes_its_producers_and_a_product_its_transposed_weight() -> None:
    square = plan_of(lambda x: (x * 2).pow(2).sum(-1), torch.randn(8, 5))
    assert titles(square) == {"mul+pow+sum"}
    wide = plan_of(lambda x, w: F.relu(x @ w.t()), torch.randn(2, 64), torch.randn(32, 64))
    assert titles(wide) == {"matmul+relu"}
    assert not wide.leftovers


def test_the_same_attempt_gives_the_same_bytes_and_attempts_end() -> None:
    first, second = example("gated_mlp").graph, example("gated_mlp").graph
    for a, b in zip(plan(first).proposals, plan(second).proposals, strict=True):
        mine, theirs = attempts(first, a.region), attempts(second, b.region)
        assert mine == theirs
        assert len({c.strategy for c in mine}) == len(mine) >= 2


def test_the_reduction_length_is_that_of_the_longest_sum() -> None:
    case = example("gated_mlp")
    lengths = {p.title: reduction_length(case.graph, p.region) for p in plan(case.graph).proposals}
    assert lengths == {"rms_norm": 64, "linear+silu+mul": 64, "linear": 64, "linear+add": 96}


QUICK = ("gated_mlp",)


@pytest.mark.parametrize(
    "name", [e if e in QUICK else pytest.param(e, marks=pytest.mark.slow) for e in EXAMPLES]
)
def test_the_first_attempts_at_an_example_are_right(emulator: Emulator, tmp_path: Path, name: str) -> None:
    case = example(name)
    for proposal in plan(case.graph).proposals:
        candidate = BuiltinCoder().attempt(case.graph, proposal.region, 0)
        assert candidate
        inputs = case.values_at(proposal.region)
        check(emulator, tmp_path, case, [inputs], region=proposal.region, tunes=[candidate.strategy])


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", EXAMPLES)
def test_nvcc_compiles_every_strategy_without_a_warning(
    tmp_path: Path, name: str, dtype: torch.dtype
) -> None:
    case = example(name)
    narrow = traced(Many([lambda x, y: F.gelu(x) + y]), torch.randn(4, 5).to(dtype), torch.randn(5).to(dtype))
    regions = [(case.graph, p.region) for p in plan(case.graph).proposals]
    for graph, region in [*regions, (narrow.graph, narrow.everything())]:
        for candidate in attempts(graph, region, "cuda"):
            require_compiled(candidate, tmp_path)


def require_compiled(candidate: Candidate, folder: Path) -> None:
    """By nvcc, for the architecture that the project is for, without a warning."""
    if not can_compile(candidate.source):
        return
    path = folder / "candidate.cu"
    path.write_text(candidate.source)
    command = ["nvcc", "-arch=sm_90", "-std=c++17", "-c", f"-I{ROOT / 'tools' / 'include'}"]
    done = subprocess.run(
        [*command, str(path), "-o", str(folder / "candidate.o")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr


OPERATIONS: dict[str, Callable[..., list[Tensor]]] = {
    "all": lambda x: [x.sum(), x.argmax(), (x > 0).any(), (x > 0).sum(), x.prod()],
    "last": lambda x: [F.softmax(x, -1), x.max(-1)[1], x.std(-1)],
    "middle": lambda x: [F.log_softmax(x, 1), x.argmin(1), x.amax(1)],
    "outer": lambda x: [x - x.mean((0, 2), keepdim=True), x.mean((0, 2))],
    "groups": lambda x: [F.group_norm(x, 2)],
    "maximum": lambda x: [F.max_pool2d(x, 3, 2, 1, ceil_mode=True).relu()],
    "mean": lambda x: [F.avg_pool2d(x, 2, count_include_pad=False)],
    "adaptive": lambda x: [F.adaptive_avg_pool1d(x, 5)],
    "convolution": lambda x: [F.conv1d(x, x, padding=3).relu() + 1],
    "concatenation": lambda x: [torch.cat([x, x.flip(1)], 2) * 2],
    "scan": lambda x: [x.cumsum(-1), x.cumprod(-1)],
    "across": lambda x: [x.flip(1).cumsum(1).flip(1)],
}


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", OPERATIONS)
def test_nvcc_compiles_every_strategy_of_every_operation(
    tmp_path: Path, name: str, dtype: torch.dtype
) -> None:
    case = traced(Whole(OPERATIONS[name]), torch.randn(4, 6, 64).to(dtype))
    candidates = attempts(case.graph, case.everything())
    assert len(candidates) >= 2
    for candidate in candidates:
        require_compiled(candidate, tmp_path)


class Whole(torch.nn.Module):
    def __init__(self, function: Callable[..., list[Tensor]]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> list[Tensor]:
        return self.function(x)
