"""The power meter: what a task's own data would accept, and that repaired data accept nothing wrong."""

from pathlib import Path

import pytest
import torch

from stitch_tui.tools.worker.power import Power, power_of
from stitch_tui.tools.worker.reference import Options, Reference
from stitch_tui.tools.worker.repair import repaired_state, signed_arguments

SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        LAYERS

    def forward(self, x):
        return BODY

def get_inputs():
    return [INPUT]
"""
RAND = "torch.rand(8, 32)"
DEEP = "self.deep = nn.Sequential(*[m for _ in range(12) for m in (nn.Linear(32, 32), nn.ReLU())])"


def opened(
    folder: Path, body: str, layers: str = "pass", inputs: str = RAND, mode: str = "train"
) -> Reference:
    text = SOURCE.replace("LAYERS", layers).replace("BODY", body).replace("INPUT", inputs)
    (folder / "model.py").write_text(text)
    return Reference.open(Options(folder, "model.py", "", mode=mode))


def measured(folder: Path, body: str, layers: str = "pass", mode: str = "train") -> Power:
    found = power_of(opened(folder, body, layers, mode=mode), 3)
    assert found.unexplained == []
    return found


def test_positive_inputs_make_a_relu_the_identity(tmp_path: Path) -> None:
    found = measured(tmp_path, "torch.relu(x)")
    assert "its input" in found.kernelbench
    assert "its input" in found.task
    assert found.repaired == []


def test_a_deep_network_hides_flipped_layers_until_it_is_repaired(tmp_path: Path) -> None:
    found = measured(tmp_path, "self.deep(x)", DEEP)
    flipped = [name for name in found.kernelbench if name.startswith("flipped ")]
    assert "another input's result" in found.kernelbench
    assert len(flipped) >= 3
    assert found.repaired == []


def test_repaired_weights_are_not_the_inputs_own_numbers(tmp_path: Path) -> None:
    layers = "self.line = nn.Linear(32, 8, bias=False)"
    reference = opened(tmp_path, "self.line(x)", layers)
    for seed in range(4):
        (x,) = signed_arguments(reference.draw_inputs(0), seed)
        weight = repaired_state(reference, [x], seed)["line.weight"]
        product = x @ weight.T
        assert float((product - product.T).norm() / product.norm()) > 0.5


def test_normalisation_in_evaluation_is_calibrated(tmp_path: Path) -> None:
    layers = "self.line = nn.Linear(32, 16); self.norm = nn.BatchNorm1d(16)"
    reference = opened(tmp_path, "self.norm(self.line(x))", layers, mode="eval")
    args = signed_arguments(reference.draw_inputs(0), 1)
    state = repaired_state(reference, args, 2)
    hidden = args[0] @ state["line.weight"].T + state["line.bias"]
    torch.testing.assert_close(state["norm.running_mean"], hidden.mean(0))
    torch.testing.assert_close(state["norm.running_var"], hidden.var(0))
    assert reference.module.get_submodule("norm").momentum == 0.1
    assert not reference.module.training
    assert measured(tmp_path, "self.norm(self.line(x))", layers, mode="eval").repaired == []


@pytest.mark.parametrize(
    ("body", "accepted"),
    [
        ("(lambda m: m - m.mean(1, keepdim=True))(self.line(x).max(1, keepdim=True).values)", "zeros"),
        ("self.line(x) * 0 + self.line.bias", "another input's result"),
        ("(self.line(x).sum(1) - self.line(x).flip(1).sum(1)) * 100 + 1", "another input's result"),
    ],
)
def test_what_no_input_could_tell_apart_is_proved(tmp_path: Path, body: str, accepted: str) -> None:
    """In float64: the last one's own rounding errors look like an influence of the input."""
    found = measured(tmp_path, body, "self.line = nn.Linear(32, 16)")
    assert accepted in found.repaired
    assert found.provable[accepted] == "the result does not depend on the input"
    assert found.provable["flipped line.weight"] == "the layer has no influence on the result"


def test_a_healthy_task_accepts_nothing_wrong(tmp_path: Path) -> None:
    found = measured(tmp_path, "self.line(x)", "self.line = nn.Linear(32, 16)")
    assert found.candidates[:3] == ["zeros", "constant", "another input's result"]
    assert {"float16 operands", "flipped line.weight"} <= {*found.candidates}
    assert found.repaired == []


def test_a_reference_whose_results_are_noise_is_named_as_such(tmp_path: Path) -> None:
    found = measured(tmp_path, "self.line(x) + torch.randn_like(x)", "self.line = nn.Linear(32, 32)")
    assert found.repaired == []
    assert "random or with rounding errors" in found.notes[0]


def test_a_sign_that_cancels_is_proved(tmp_path: Path) -> None:
    gain = "self.gain = nn.Parameter(torch.randn(32, 1))"
    found = measured(tmp_path, "torch.tanh(x[:, :, None] * self.gain) * self.gain", gain)
    assert found.provable == {"flipped gain": "the layer's sign cancels"}


def test_a_tile_that_is_always_zero_may_be_lost(tmp_path: Path) -> None:
    padded = "nn.functional.pad(self.line(x), (0, 20, 0, 20))"
    found = measured(tmp_path, padded, "self.line = nn.Linear(32, 16)")
    assert found.provable == {"a lost tile": "the result is zero there"}
