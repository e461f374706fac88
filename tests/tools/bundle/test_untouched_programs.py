"""A program without kernels is the reference, operator by operator: every graph can be written down."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

from stitch_tui.tools.bundle import render

MLP = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    def forward(self, x):
        return F.softmax(self.layers(x), dim=-1)
def get_inputs():
    return [torch.randn(3, 8)]
"""
LAYER_NORM = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
    def forward(self, x):
        return self.norm(x) * 0.5 - 1
def get_inputs():
    return [torch.randn(2, 3, 8)]
"""
ATTENTION = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16, bias=False)
    def forward(self, x, mask):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(b, n, d))
def get_inputs():
    return [torch.randn(2, 5, 16), torch.ones(5, 5, dtype=torch.bool).tril()]
"""
BATCH_NORM = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
    def forward(self, x):
        return F.max_pool2d(self.bn(self.conv(x)), 2)
def get_inputs():
    return [torch.randn(2, 3, 8, 8)]
"""
NESTED = """
class Model(nn.Module):
    def forward(self, xs, options, scale=2):
        a, b = xs
        y = a + b * scale
        return [y, (options["bias"] + y, y.sum())], y.transpose(0, 1)
def get_inputs():
    return [[torch.randn(2, 3), torch.randn(2, 3)], {"bias": torch.randn(3), "kind": "fast"}, 3]
"""
VIEWS = """
class Model(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        return torch.cat([a.unsqueeze(0).expand(2, -1, -1), b.flip(0)[None]], dim=0)[..., 1:], x
def get_inputs():
    return [torch.randn(4, 6)]
"""
DROPOUT = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.0)
    def forward(self, x):
        return self.drop(x).exp()
def get_inputs():
    return [torch.randn(4, 6)]
"""
RANDOM = DROPOUT.replace("0.0", "0.5")
CONSTANTS = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.arange(6.0)
    def forward(self, x):
        y = torch.where(x > 0, x, float("-inf")) + self.table
        z = y.masked_fill(y < -1e30, 0.25) + torch.tensor([1.5, float("inf"), -2, 0, 0, 1])
        return z, x.to(torch.float16)
def get_inputs():
    return [torch.randn(4, 6)]
"""
SHARED = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
        self.head.weight = self.embed.weight
        self.block = nn.Linear(4, 4)
        self.again = self.block
        self.register_buffer("hidden", torch.ones(4), persistent=False)
        self.register_buffer("scale", torch.full((4,), 2.0))
        self.register_parameter("absent", None)
    def forward(self, ids):
        return self.head(self.again(self.block(self.embed(ids))) * self.scale + self.hidden)
def get_inputs():
    return [torch.randint(0, 10, (2, 3))]
"""
NAMES = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.x = nn.Parameter(torch.ones(3))
    def forward(self, w, w_, device=None, kernel=2):
        relu = torch.relu(w) + w_ * self.x + torch.arange(3, device=w.device)
        return relu * kernel
def get_inputs():
    return [torch.randn(3), torch.randn(3), None, 2]
"""
ALL = {name: text for name, text in globals().items() if name.isupper() and isinstance(text, str)}


@pytest.mark.parametrize("name", ALL)
def test_the_program_equals_the_reference(
    name: str, case: Any, stitched: Any, assert_same: Callable[..., None]
) -> None:
    exported = case(ALL[name])
    reference, mine = exported.model(), stitched(exported)
    for seed in (1, 2):
        args = exported.reference.draw_inputs(seed)
        torch.manual_seed(seed)
        expected = reference(*copy.deepcopy(args))
        torch.manual_seed(seed)
        assert_same(mine(*args), expected)
    assert_same(mine.state_dict(), reference.state_dict())


def test_evaluation_mode_uses_the_running_statistics(case: Any, stitched: Any, assert_same: Any) -> None:
    exported = case(BATCH_NORM, mode="eval")
    reference, mine = exported.model(), stitched(exported)
    args = exported.reference.draw_inputs(1)
    assert_same(mine(*args), reference(*args))
    assert_same(mine.state_dict(), reference.state_dict())


def test_the_other_mode_is_refused(case: Any, stitched: Any) -> None:
    mine = stitched(case(BATCH_NORM, mode="eval"))
    with pytest.raises(RuntimeError, match=r"verified in eval mode only: call \.eval\(\)"):
        mine.train()(torch.randn(2, 3, 8, 8))


def test_a_state_dict_goes_both_ways(case: Any, stitched: Any, assert_same: Any) -> None:
    exported = case(SHARED)
    reference, mine = exported.model(), stitched(exported)
    with torch.no_grad():
        for value in reference.parameters():
            value.add_(1)
    args = exported.reference.draw_inputs(1)
    mine.load_state_dict(reference.state_dict())
    assert_same(mine(*args), reference(*args))
    reference.load_state_dict(mine.state_dict())
    mine.load_state_dict({k: v * 2 for k, v in reference.state_dict().items()}, assign=True)
    reference.load_state_dict(mine.state_dict())
    assert_same(mine(*args), reference(*args))


def test_shared_weights_and_modules_stay_shared(case: Any, stitched: Any) -> None:
    mine = stitched(case(SHARED))
    assert mine.embed.weight is mine.head.weight
    assert mine.block is mine.again
    assert [name for name, _ in mine.named_parameters()] == ["embed.weight", "block.weight", "block.bias"]
    assert "hidden" not in mine.state_dict()
    assert "hidden" in dict(mine.named_buffers())


def test_initial_weights_depend_on_the_seed_as_the_reference_s_do(
    case: Any, load: Any, assert_same: Any
) -> None:
    exported = case(MLP)
    ours = load(render(exported.program())).ModelNew
    for seed in (3, 4):
        torch.manual_seed(seed)
        reference = exported.reference.loaded.build()
        torch.manual_seed(seed)
        assert_same(ours().state_dict(), reference.state_dict())


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            (torch.zeros(2, 8),),
            r"x: this program is for torch.float32 \(3, 8\) on cpu, got torch.float32 \(2, 8\)",
        ),
        ((torch.zeros(3, 8, dtype=torch.float64),), r"x: .* got torch.float64 \(3, 8\) on cpu"),
        ((torch.zeros(3, 8, device="meta"),), r"layers.0.weight: .* on meta, got .* on cpu"),
        (([1, 2],), "x: expected a tensor, got list"),
    ],
)
def test_inputs_of_another_kind_are_refused(args: Any, message: str, case: Any, stitched: Any) -> None:
    with pytest.raises(RuntimeError, match=message):
        stitched(case(MLP))(*args)


def test_weights_of_another_dtype_are_refused(case: Any, stitched: Any) -> None:
    mine = stitched(case(MLP)).to(torch.bfloat16)
    with pytest.raises(RuntimeError, match=r"layers.0.weight: this program is for torch.float32"):
        mine(torch.zeros(3, 8))


def test_plain_arguments_are_built_in(case: Any, stitched: Any) -> None:
    exported = case(NESTED)
    xs, options, _ = exported.reference.draw_inputs(0)
    with pytest.raises(RuntimeError, match="scale: this program is for the value 3, got 4"):
        stitched(exported)(xs, options, 4)


def test_copies_and_pickles_work(case: Any, load: Any, assert_same: Any) -> None:
    exported = case(CONSTANTS)
    mine = load(render(exported.program())).ModelNew()
    args = exported.reference.draw_inputs(1)
    expected = mine(*args)
    assert_same(copy.deepcopy(mine)(*args), expected)
    assert_same(pickle.loads(pickle.dumps(mine))(*args), expected)


def test_results_are_not_overwritten_by_the_next_call(case: Any, stitched: Any) -> None:
    exported = case(MLP)
    mine = stitched(exported)
    first = mine(torch.zeros(3, 8))
    kept = first.clone()
    mine(torch.ones(3, 8))
    assert torch.equal(first, kept)


def test_no_gradient_is_promised(case: Any, stitched: Any) -> None:
    assert not stitched(case(MLP))(torch.zeros(3, 8)).requires_grad
