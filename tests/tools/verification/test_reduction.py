import pytest
import torch
from torch import nn

from stitch_tui.tools.worker.downgrade import ROUNDINGS, named
from stitch_tui.tools.worker.reduction import longest_sum


def node(op: str, *args: object, result: tuple[int, ...] = (4, 5), **options: object) -> dict[str, object]:
    return {"id": "n", "op": op, "args": list(args), "kwargs": options, "outputs": [{"shape": list(result)}]}


SHAPES = {"x": (4, 33), "w": (5, 33), "a": (33, 5), "image": (2, 6, 9, 9), "kernel": (8, 3, 3, 3), "b": (5,)}


@pytest.mark.parametrize(
    ("made", "length"),
    [
        (node("aten.linear.default", {"ref": "x"}, {"ref": "w"}), 33),
        (node("aten.mm.default", {"ref": "x"}, {"ref": "a"}), 33),
        (node("aten.addmm.default", {"ref": "b"}, {"ref": "x"}, {"ref": "a"}), 33),
        (node("aten.convolution.default", {"ref": "image"}, {"ref": "kernel"}), 27),
        (node("aten.sum.dim_IntList", {"ref": "image"}, [2, 3]), 81),
        (node("aten.sum.default", {"ref": "x"}), 132),
        (node("aten.softmax.int", {"ref": "x"}, -1), 33),
        (node("aten.layer_norm.default", {"ref": "x"}, [33]), 33),
        (node("aten.relu.default", {"ref": "x"}, result=(4, 33)), 1),
        (node("aten.avg_pool2d.default", {"ref": "image"}, [3, 3], result=(2, 6, 3, 3)), 9),
        (node("aten.amax.default", {"ref": "x"}, [1], result=(4,)), 1),
        (node("opaque", {"ref": "x"}), 0),
    ],
)
def test_the_longest_sum_is_read_from_the_operator(made: dict[str, object], length: int) -> None:
    assert longest_sum([made], lambda value: {"shape": list(SHAPES[value])}) == length


@pytest.mark.parametrize("precision", ROUNDINGS)
def test_a_downgrade_is_named_and_another_order_of_summation_is_not(precision: str) -> None:
    generator = torch.Generator().manual_seed(5)
    x, w = torch.randn(30, 64, generator=generator), torch.randn(20, 64, generator=generator)
    exact = nn.functional.linear(x.double(), w.double())
    rounding = ROUNDINGS[precision]

    def evaluate(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        return [tensors[0].double() @ tensors[1].double().T]

    words, likeness = named(0, rounding(x) @ rounding(w).T, exact, [x, w], evaluate)
    assert words == f"operands rounded to {precision}"
    assert likeness > 0.99
    halves = x[:, :32] @ w[:, :32].T + x[:, 32:] @ w[:, 32:].T
    assert named(0, halves, exact, [x, w], evaluate)[0] == ""
    # a single number is like any other one
    assert named(0, rounding(x)[:1] @ rounding(w)[:1].T, exact[:1, :1], [x[:1], w[:1]], evaluate)[0] == ""
