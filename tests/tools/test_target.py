"""Regions and whole programs evaluated in the judge: equal to the module, without side effects."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stitch_tui.tools.graph import Graph, InvalidRegion, region_of
from stitch_tui.tools.worker.faults import Fault
from stitch_tui.tools.worker.interpreter import run_nodes
from stitch_tui.tools.worker.program_target import ProgramTarget
from stitch_tui.tools.worker.reference import Options, Reference
from stitch_tui.tools.worker.region_target import RegionTarget
from stitch_tui.tools.worker.slots import Target
from stitch_tui.tools.worker.sources import source_values
from stitch_tui.tools.worker.target import target_of
from stitch_tui.tools.worker.task import Task

SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm1d(4)
        self.line = nn.Linear(4, 4)
        self.tail = nn.LayerNorm(4)
        self.shift = torch.linspace(-1, 1, 4)

    def forward(self, x, index):
        y = self.norm(self.conv(x)).relu_().mean(-1)
        z = F.gelu(self.line(y)) + y[index] + self.shift
        best, place = z.max(dim=1)
        a, b = self.tail(z).chunk(2, dim=-1)
        return a * b, torch.softmax(z, -1).to(torch.float64), best, place

def get_inputs():
    return [torch.randn(6, 3, 8), torch.randint(0, 6, (6,))]
"""

OPAQUE_SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 4)
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x):
        self.total += x.mean(0)
        return torch.sigmoid(self.line(x)) if x.sum() > -1e9 else x

def get_inputs():
    return [torch.randn(5, 4)]
"""


def open_task(folder: Path, source: str, **options: Any) -> Task:
    own = Path(tempfile.mkdtemp(dir=folder))  # Python may keep what it compiled of a file of the same size
    (own / "model.py").write_text(source)
    return Task(Reference.open(Options(own, "model.py", **options)))


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return open_task(tmp_path_factory.mktemp("reference"), SOURCE)


@pytest.fixture(scope="module")
def graph(task: Task) -> Graph:
    return Graph.model_validate_json(json.dumps(task.full.exported.graph))


def region_target(task: Task, graph: Graph, nodes: Any) -> Target:
    region = region_of(graph, nodes)
    return target_of(task, {"kind": "region", "region": region.model_dump(mode="json")})


@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_region_on_its_captured_border_gives_the_values_of_the_whole(
    data: st.DataObject, task: Task, graph: Graph
) -> None:
    first = data.draw(st.integers(0, len(graph.nodes) - 1))
    last = data.draw(st.integers(first, len(graph.nodes) - 1))
    nodes = {node.id for node in graph.nodes[first : last + 1]}
    nodes -= data.draw(st.sets(st.sampled_from(sorted(nodes)), max_size=2))
    try:
        target = region_target(task, graph, nodes)
    except InvalidRegion:
        return
    values = source_values(task.reference, task.full.exported, task.full.tensors(11))
    with torch.no_grad():
        run_nodes(task.full.exported.graph["nodes"], values, task.reference.device)
    border = target.draw("full", 11)
    for slot, tensor in zip(target.inputs, border, strict=True):
        assert tensor.dtype is slot.dtype
        torch.testing.assert_close(tensor, values[slot.name], rtol=0, atol=0)
    for slot, output in zip(target.outputs, target.evaluate(border, "own", "full"), strict=True):
        torch.testing.assert_close(output, values[slot.name], rtol=0, atol=0)


def test_the_program_gives_what_the_module_gives_then_its_buffers(task: Task) -> None:
    target = ProgramTarget(task)
    drawn = target.draw("full", 5)
    outputs = target.evaluate(drawn, "own", "full")
    expected = task.run(task.full.draw(5))
    assert [slot.target for slot in target.outputs if slot.kind == "buffer"] == expected.mutated
    for output, wanted in zip(outputs, expected.outputs, strict=False):
        torch.testing.assert_close(output, wanted, rtol=0, atol=0)
    for output, name in zip(outputs[len(expected.outputs) :], expected.mutated, strict=True):
        torch.testing.assert_close(output, expected.buffers[name], rtol=0, atol=0)


@pytest.mark.parametrize("precision", ["own", "f64"])
def test_evaluating_changes_neither_its_arguments_nor_the_module(
    precision: str, task: Task, graph: Graph
) -> None:
    for target in (ProgramTarget(task), region_target(task, graph, graph.node)):
        drawn = target.draw("full", 3)
        before = [tensor.clone() for tensor in drawn]
        state = {name: value.clone() for name, value in task.reference.module.state_dict().items()}
        for output in target.evaluate(drawn, precision, "full"):
            output.zero_()
        assert all(torch.equal(one, other) for one, other in zip(drawn, before, strict=True))
        assert all(torch.equal(v, state[k]) for k, v in task.reference.module.state_dict().items())


def test_float64_is_closer_to_the_truth_and_touches_no_integer(task: Task, graph: Graph) -> None:
    for target in (ProgramTarget(task), region_target(task, graph, graph.node)):
        drawn = target.draw("full", 9)
        own, wide = (target.evaluate(drawn, precision, "full") for precision in ("own", "f64"))
        assert not target.narrowed
        for single, double in zip(own, wide, strict=True):
            if single.is_floating_point():
                assert double.dtype is torch.float64
                torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=1e-5)
                again = torch.equal(single.double(), double)
                assert not again or single.numel() < 8
            else:
                assert torch.equal(single, double)


def test_new_weights_in_the_module_are_what_is_drawn_next(tmp_path: Path) -> None:
    task = open_task(tmp_path, SOURCE)
    target = ProgramTarget(task)
    place = [slot.target for slot in target.inputs].index("line.weight")
    with torch.no_grad():
        task.reference.module.get_parameter("line.weight").mul_(2)
    assert torch.equal(target.draw("full", 1)[place], task.reference.parameters["line.weight"])


def test_given_weights_are_used_and_not_the_modules(task: Task, graph: Graph) -> None:
    for target in (ProgramTarget(task), region_target(task, graph, graph.node)):
        drawn = target.draw("full", 2)
        place = [slot.target for slot in target.inputs].index("line.bias")
        changed = [tensor + 1 if index == place else tensor for index, tensor in enumerate(drawn)]
        for precision in ("own", "f64"):
            before, after = (target.evaluate(x, precision, "full") for x in (drawn, changed))
            assert any(not torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_an_opaque_reference_is_evaluated_by_its_module(tmp_path: Path) -> None:
    task = open_task(tmp_path, OPAQUE_SOURCE)
    graph = Graph.model_validate(task.full.exported.graph)
    target = region_target(task, graph, graph.node)
    drawn = target.draw("full", 4)
    own, wide = (target.evaluate(drawn, precision, "full") for precision in ("own", "f64"))
    assert [tuple(tensor.shape) for tensor in own] == [(5, 4), (4,)]
    for single, double in zip(own, wide, strict=True):
        assert double.dtype is torch.float64
        torch.testing.assert_close(single.double(), double, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(own[1], drawn[0].mean(0))
    assert task.reference.buffers["total"].abs().max() == 0


def test_dropout_is_flagged_as_random_and_dropout_of_nothing_is_not(tmp_path: Path) -> None:
    source = SOURCE.replace("self.tail = nn.LayerNorm(4)", "self.tail = nn.Dropout({p})")
    for p, expected in ((0.5, ["native_dropout"]), (0.0, [])):
        task = open_task(tmp_path, source.replace("{p}", str(p)))
        assert ProgramTarget(task).random == expected


def test_recurrent_weights_are_taken_from_the_arguments(tmp_path: Path) -> None:
    source = """
import torch
import torch.nn as nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(3, 4)
    def forward(self, x):
        return self.cell(x)[0]
def get_inputs():
    return [torch.randn(5, 2, 3)]
"""
    target = ProgramTarget(open_task(tmp_path, source))
    drawn = target.draw("full", 2)
    zeros = [drawn[0], *(torch.zeros_like(tensor) for tensor in drawn[1:])]
    assert target.evaluate(zeros, "own", "full")[0].abs().max() == 0
    assert target.evaluate(drawn, "own", "full")[0].abs().max() > 0


def test_a_region_of_unknown_nodes_is_refused(task: Task) -> None:
    with pytest.raises(Fault, match="no node nowhere"):
        target_of(task, {"kind": "region", "region": {"nodes": ["nowhere"], "inputs": [], "outputs": []}})


def test_inputs_that_forward_overwrites_are_copied_first(tmp_path: Path) -> None:
    source = """
import torch
import torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return x.mul_(2)
def get_inputs():
    return [torch.ones(4)]
"""
    task = open_task(tmp_path, source)
    assert task.reference.writes_inputs
    target = ProgramTarget(task)
    drawn = target.draw("full", 1)
    for _ in range(2):
        assert target.evaluate(drawn, "own", "full")[0].tolist() == [2, 2, 2, 2]
    assert drawn[0].tolist() == [1, 1, 1, 1]


def test_a_number_that_follows_the_extents_differs_and_one_that_does_not_is_the_same(tmp_path: Path) -> None:
    source = """
import torch
import torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return (x * 3 + 1).sum(dim=1) / x.shape[0]
def get_inputs():
    return [torch.randn(6, 8)]
"""
    task = open_task(tmp_path, source)
    graph = Graph.model_validate_json(json.dumps(task.full.exported.graph))
    target = region_target(task, graph, graph.node)
    assert isinstance(target, RegionTarget)
    rows = {name: variant.inputs[0]["shape"][0] for name, variant in task.variants.items()}
    assert set(rows.values()) > {6}
    assert {name: target.differing(name) for name in rows} == {
        name: [] if extent == 6 else ["div"] for name, extent in rows.items()
    }
