"""Small shape variants: what can change is found, what cannot is left, and each one runs."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from stitch_tui.tools.worker.faults import Fault
from stitch_tui.tools.worker.program_target import ProgramTarget
from stitch_tui.tools.worker.reference import Options, Reference, called_on
from stitch_tui.tools.worker.task import Task
from stitch_tui.tools.worker.template import tensor_leaves
from stitch_tui.tools.worker.variants import Variant, given

HEADER = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def open_task(folder: Path, source: str, **options: Any) -> Task:
    (folder / "model.py").write_text(HEADER + source)
    return Task(Reference.open(Options(folder, "model.py", **options)))


def shapes(task: Task) -> dict[str, list[list[int]]]:
    """Shapes that the search proposes, before any of them is run and exported."""
    proposed = task.proposed(time.monotonic() + 60)
    return {c.name: [list(leaf.shape) for leaf in tensor_leaves(c.draw(1))] for c in proposed}


def confirmed(task: Task) -> dict[str, list[list[int]]]:
    return {name: [spec["shape"] for spec in v.inputs] for name, v in task.variants.items()}


LINEAR = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(32, 8)
    def forward(self, x):
        return torch.softmax(self.line(x), -1)
def get_inputs():
    return [torch.randn(128, 32)]
"""


def returned(variant: Variant) -> list[list[int]]:
    """Shapes of the results, as the variant's graph says."""
    exported = variant.exported
    return [exported.spec(value)["shape"] for value in exported.graph["outputs"]]


def test_the_batch_changes_and_the_features_that_meet_weights_do_not(tmp_path: Path) -> None:
    task = open_task(tmp_path, LINEAR)
    assert confirmed(task) == {
        "full": [[128, 32]],
        "small_odd": [[5, 32]],
        "ones": [[1, 32]],
        "small_even": [[6, 32]],
        "medium": [[67, 32]],
    }
    for name, variant in task.variants.items():
        target = ProgramTarget(task)
        drawn = target.draw(name, 3)
        assert list(drawn[0].shape) == variant.inputs[0]["shape"]
        own, wide = (target.evaluate(drawn, precision, name) for precision in ("own", "f64"))
        assert [list(t.shape) for t in own] == returned(variant)
        torch.testing.assert_close(own[0].double(), wide[0], rtol=1e-5, atol=1e-6)
        assert variant.exported.skeleton == task.full.exported.skeleton


def test_equal_extents_of_several_inputs_change_together_and_different_ones_apart(tmp_path: Path) -> None:
    source = """
class Model(nn.Module):
    def forward(self, a, b):
        return a @ b
def get_inputs():
    return [torch.randn(48, 80), torch.randn(80, 64)]
"""
    sizes = shapes(open_task(tmp_path, source))
    assert sizes["small_odd"] == [[11, 5], [5, 7]]
    assert sizes["ones"] == [[1, 1], [1, 1]]


def test_extents_that_a_whole_group_cannot_change_are_tried_apart(tmp_path: Path) -> None:
    source = LINEAR.replace("(128, 32)", "(32, 32)")
    assert shapes(open_task(tmp_path, source))["small_odd"] == [[5, 32]]


def test_a_size_at_which_forward_broadcasts_otherwise_is_not_a_variant(tmp_path: Path) -> None:
    source = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.places = nn.Parameter(torch.randn(9, 4))
    def forward(self, x):
        return x + self.places
def get_inputs():
    return [torch.randn(16, 9, 4)]
"""
    assert shapes(open_task(tmp_path, source))["ones"] == [[1, 9, 4]]


def test_training_batch_norm_keeps_more_than_one_value_a_channel(tmp_path: Path) -> None:
    source = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(6)
    def forward(self, x):
        return self.norm(x)
def get_inputs():
    return [torch.randn(32, 6)]
"""
    sizes = shapes(open_task(tmp_path, source))
    assert "ones" not in sizes
    assert sizes["small_odd"] == [[5, 6]]


def test_patches_shrink_by_powers_of_two(tmp_path: Path) -> None:
    source = """
class Model(nn.Module):
    def forward(self, x):
        return x.view(x.shape[0], -1, 16).sum(1)
def get_inputs():
    return [torch.randn(3, 256)]
"""
    assert shapes(open_task(tmp_path, source))["small_odd"] == [[3, 16]]


def test_nothing_that_can_change_leaves_full_size_and_says_so(tmp_path: Path) -> None:
    source = LINEAR.replace("self.line(x)", "self.line(x.view(128, 32))")
    task = open_task(tmp_path, source)
    assert list(confirmed(task)) == ["full"]
    assert any("only full size" in note for note in task.variant_notes)


def test_small_draws_keep_the_structure_of_the_inputs(tmp_path: Path) -> None:
    source = """
class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)
def get_inputs():
    return [torch.tril(torch.rand(40, 40) + 1)]
"""
    task = open_task(tmp_path, source)
    draw = next(c.draw for c in task.proposed(time.monotonic() + 60) if c.name == "small_odd")
    small = draw(3)[0]
    assert small.shape == (5, 5)
    assert torch.equal(small, small.tril())
    assert (small.diagonal() >= 1).all()
    assert not torch.equal(small, draw(4)[0])


def test_indices_that_leave_the_smaller_table_drop_the_variant_with_a_note(tmp_path: Path) -> None:
    source = """
class Model(nn.Module):
    def forward(self, table, rows):
        return table[rows]
def get_inputs():
    return [torch.randn(50, 8), torch.full((20,), 49)]
"""
    task = open_task(tmp_path, source)
    assert list(task.variants) == ["full"]
    assert any(note.startswith("small_odd dropped") for note in task.variant_notes)


SMALL = """
def get_small_inputs():
    return {returned}
"""


def test_the_references_own_small_inputs_are_used_instead(tmp_path: Path) -> None:
    one = open_task(tmp_path, LINEAR + SMALL.format(returned="[torch.randn(3, 32)]"))
    assert [c.name for c in given(one.reference, one.template)] == ["small_0"]
    several = "[[torch.randn(3, 32)], [torch.randn(9, 32)]]"
    many = open_task(tmp_path, LINEAR + SMALL.format(returned=several))
    assert confirmed(many) == {"full": [[128, 32]], "small_0": [[3, 32]], "small_1": [[9, 32]]}
    assert many.variants["small_1"].tensors(1)[0].shape == (9, 32)


def test_small_inputs_of_another_form_are_an_error(tmp_path: Path) -> None:
    task = open_task(tmp_path, LINEAR + SMALL.format(returned="[torch.randn(3, 32), 5]"))
    with pytest.raises(Fault, match="something else than get_inputs"):
        _ = task.variants


def test_an_opaque_reference_has_variants_too(tmp_path: Path) -> None:
    source = LINEAR.replace("return torch", "return x if x.sum() > 1e9 else torch")
    task = open_task(tmp_path, source)
    assert task.full.exported.graph["nodes"][0]["op"] == "opaque"
    assert list(task.variants) == ["full", "small_odd", "ones", "small_even", "medium"]
    target = ProgramTarget(task)
    for name in task.variants:
        (result,) = target.evaluate(target.draw(name, 1), "own", name)
        assert [list(result.shape)] == returned(task.variant(name))


def test_inputs_are_made_on_the_device_where_their_function_allows_it() -> None:
    drawn, at = called_on(torch.device("meta"), lambda: torch.rand(3), 1)
    assert (drawn.device.type, at.type) == ("meta", "meta")


@pytest.mark.parametrize(
    "function",
    [
        lambda: torch.tensor(torch.rand(2).tolist() + torch.rand(1).tolist()),
        lambda: torch.rand(3) + torch.zeros(3, device="cpu") * float(torch.ones(())),
    ],
)
def test_other_inputs_are_made_on_the_cpu_as_if_nothing_had_been_tried(
    function: Callable[[], torch.Tensor],
) -> None:
    torch.manual_seed(1)
    expected = function()
    drawn, at = called_on(torch.device("meta"), function, 1)
    assert at.type == "cpu"
    assert torch.equal(drawn, expected)
