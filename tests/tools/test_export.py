"""The graph that the judge writes: valid for `tools.graph`, exact about shapes, sources and costs."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from stitch_tui.tools.graph import DType, Graph, ValueKind, region_of
from stitch_tui.tools.worker import decompositions
from stitch_tui.tools.worker.export import OPAQUE
from stitch_tui.tools.worker.interpreter import run_nodes
from stitch_tui.tools.worker.reference import Options, Reference
from stitch_tui.tools.worker.sources import source_values
from stitch_tui.tools.worker.task import Task

HEADER = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"

MLP = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(12, 8)
        self.second = nn.Linear(8, 3, bias=False)
    def forward(self, x):
        return self.second(torch.relu(self.first(x)))
def get_inputs():
    return [torch.randn(6, 12)]
"""

NORM_GELU = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
    def forward(self, x):
        return F.gelu(self.norm(x), approximate="tanh")
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(Block(), Block())
    def forward(self, x):
        return self.layers(x)
def get_inputs():
    return [torch.randn(4, 16)]
"""

ATTENTION = """
class Model(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
def get_inputs():
    return [torch.randn(2, 3, 10, 8) for _ in range(3)]
"""

BATCH_NORM = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
    def forward(self, x):
        return self.norm(self.conv(x)).relu_()
def get_inputs():
    return [torch.randn(5, 3, 8, 8)]
"""

MANY_OUTPUTS = """
class Model(nn.Module):
    def forward(self, x, scale, flags):
        values, places = x.max(dim=1)
        return x * scale, [values, places], flags
def get_inputs():
    return [torch.randn(4, 6), 2.5, torch.tensor([True, False])]
"""

SHARED = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(6, 6)
        self.decode = nn.Linear(6, 6)
        self.decode.weight = self.encode.weight
        self.again = self.encode
    def forward(self, x):
        return self.again(self.decode(self.encode(x)))
def get_inputs():
    return [torch.randn(3, 6)]
"""

VIEWS = """
class Model(nn.Module):
    def forward(self, x):
        y = x.transpose(0, 1)
        return y, y.reshape(-1)[::2].unsqueeze(0).expand(3, -1), torch.cat(x.split(2))
def get_inputs():
    return [torch.randn(4, 6)]
"""

CONSTANTS = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.arange(5.0)
        self.register_buffer("mask", torch.tensor([True, False, True, False, True]), persistent=False)
    def forward(self, x):
        y = (x + self.table + torch.tensor(3.0)).masked_fill(self.mask, float("-inf"))
        return y.to(torch.bfloat16), torch.zeros(2, device=x.device)
def get_inputs():
    return [torch.randn(2, 5)]
"""

RECURRENT = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(4, 5, batch_first=True)
    def forward(self, x):
        out, (h, c) = self.cell(x)
        return out, c
def get_inputs():
    return [torch.randn(2, 3, 4)]
"""

SOURCES = {
    "mlp": MLP,
    "norm_gelu": NORM_GELU,
    "attention": ATTENTION,
    "batch_norm": BATCH_NORM,
    "many_outputs": MANY_OUTPUTS,
    "shared": SHARED,
    "views": VIEWS,
    "constants": CONSTANTS,
    "recurrent": RECURRENT,
}


def open_task(folder: Path, source: str, **options: Any) -> Task:
    (folder / "model.py").write_text(HEADER + source)
    return Task(Reference.open(Options(folder, "model.py", **options)))


def graph_of(task: Task) -> Graph:
    return Graph.model_validate_json(json.dumps(task.full.exported.graph))


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Task]:
    """A reference of `SOURCES`, exported once for all tests."""
    return cache(lambda name: open_task(tmp_path_factory.mktemp(name), SOURCES[name]))


@pytest.mark.parametrize("name", SOURCES)
def test_graph_is_valid_and_computes_what_the_module_computes(name: str, task: Callable[[str], Task]) -> None:
    opened = task(name)
    graph = graph_of(opened)
    assert opened.unexportable is None
    values = source_values(opened.reference, opened.full.exported, opened.full.tensors(7))
    with torch.no_grad():
        run_nodes(opened.full.exported.graph["nodes"], values, opened.reference.device)
    expected = opened.run(opened.full.draw(7))
    for value, output in zip(graph.outputs, expected.outputs, strict=True):
        torch.testing.assert_close(values[value], output, rtol=1e-5, atol=1e-6)
        spec = graph.spec(value)
        assert (spec.shape, spec.strides) == (
            tuple(output.shape),
            None if output.is_contiguous() else output.stride(),
        )
    for buffer, node in graph.mutations.items():
        torch.testing.assert_close(values[node], expected.buffers[graph.source[buffer].target])


@pytest.mark.parametrize("name", SOURCES)
def test_the_whole_graph_is_a_region(name: str, task: Callable[[str], Task]) -> None:
    graph = graph_of(task(name))
    assert region_of(graph, graph.node).nodes == tuple(graph.node)


def test_composite_operators_stay_whole_and_carry_module_and_line(task: Callable[[str], Task]) -> None:
    graph = graph_of(task("norm_gelu"))
    assert [node.op for node in graph.nodes] == ["aten.layer_norm.default", "aten.gelu.default"] * 2
    norm, gelu = graph.nodes[2:]
    assert (norm.module, gelu.module) == ("layers.1.norm", "layers.1")
    text = (HEADER + NORM_GELU).splitlines()
    assert "F.gelu" in text[int(gelu.source.removeprefix("model.py:")) - 1]
    assert gelu.kwargs == {"approximate": "tanh"}


def test_work_and_bytes_of_linear_attention_and_convolution_are_exact(task: Callable[[str], Task]) -> None:
    linear = graph_of(task("mlp")).nodes[0]
    assert linear.flops == 2 * 6 * 12 * 8
    assert linear.bytes_moved == 4 * (6 * 12 + 8 * 12 + 8 + 6 * 8)
    attention = graph_of(task("attention")).nodes[0]
    assert attention.flops == 2 * (2 * 3) * 10 * 10 * (8 + 8)
    conv = next(n for n in graph_of(task("batch_norm")).nodes if "conv" in n.op)
    assert conv.flops == 2 * 5 * 4 * 8 * 8 * 3 * 3 * 3


def test_views_cost_nothing_and_record_strides(task: Callable[[str], Task]) -> None:
    graph = graph_of(task("views"))
    transposed = graph.spec(graph.outputs[0])
    assert transposed.strides == (1, 6)
    assert {n.op for n in graph.nodes if n.bytes_moved} == {"aten.clone.default", "aten.cat.default"}


def test_batch_norm_in_training_mode_records_its_running_statistics(
    task: Callable[[str], Task], tmp_path: Path
) -> None:
    graph = graph_of(task("batch_norm"))
    changed = {graph.source[buffer].target for buffer in graph.mutations}
    assert changed == {"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}
    assert not graph_of(open_task(tmp_path, BATCH_NORM, mode="eval")).mutations


def test_a_shared_parameter_is_one_source_under_its_first_name(task: Callable[[str], Task]) -> None:
    graph = graph_of(task("shared"))
    parameters = [s.target for s in graph.sources if s.kind is ValueKind.PARAMETER]
    assert sorted(parameters) == ["decode.bias", "encode.bias", "encode.weight"]


def test_constants_numbers_and_dtypes_survive(task: Callable[[str], Task]) -> None:
    graph = graph_of(task("constants"))
    kinds = [source.kind for source in graph.sources]
    assert kinds[0] is ValueKind.INPUT
    assert kinds.count(ValueKind.CONSTANT) == 2
    assert kinds.count(ValueKind.BUFFER) == 1
    fill = next(node for node in graph.nodes if "masked_fill" in node.op)
    assert fill.args[2] == {"float": "-inf"}
    assert graph.spec(graph.outputs[0]).dtype is DType.BF16


def test_numbers_among_the_inputs_are_part_of_the_graph(task: Callable[[str], Task]) -> None:
    graph = graph_of(task("many_outputs"))
    assert [s.target for s in graph.sources] == ["x", "flags"]
    assert graph.nodes[-1].args == ({"ref": "x"}, 2.5) or any(2.5 in node.args for node in graph.nodes)
    assert len(graph.outputs) == 4


DATA_DEPENDENT = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(()))
    def forward(self, x):
        self.count += 1
        if x.sum() > 0:
            x = self.line(x)
        return x, x * 2
def get_inputs():
    return [torch.randn(3, 4)]
"""


def test_control_flow_on_data_gives_one_opaque_node_and_a_reason(tmp_path: Path) -> None:
    task = open_task(tmp_path, DATA_DEPENDENT)
    graph = graph_of(task)
    assert [node.op for node in graph.nodes] == [OPAQUE, "getitem", "getitem", "getitem"]
    assert task.unexportable is not None
    assert task.unexportable.where == "model.py:12"
    assert "x.sum() > 0" in task.unexportable.why
    assert {graph.source[b].target for b in graph.mutations} == {"count"}
    region = region_of(graph, graph.node)
    assert [graph.kind(value) for value in region.inputs] == ["input", "parameter", "parameter", "buffer"]


def test_complex_values_make_the_reference_opaque(tmp_path: Path) -> None:
    source = """
class Model(nn.Module):
    def forward(self, x):
        return torch.fft.fft(x).abs()
def get_inputs():
    return [torch.randn(3, 8)]
"""
    task = open_task(tmp_path, source)
    assert [node.op for node in graph_of(task).nodes] == [OPAQUE, "getitem"]
    assert task.unexportable is not None
    assert "complex64" in task.unexportable.why


def test_a_size_that_depends_on_values_makes_the_reference_opaque(tmp_path: Path) -> None:
    source = """
class Model(nn.Module):
    def forward(self, x):
        return x[x > 0].sum()
def get_inputs():
    return [torch.randn(3, 8)]
"""
    task = open_task(tmp_path, source)
    assert graph_of(task).nodes[0].op == OPAQUE
    assert task.unexportable is not None
    assert "depends on values" in task.unexportable.why


def test_a_graph_that_computes_something_else_is_not_believed(tmp_path: Path) -> None:
    source = """
CALLS = []
class Model(nn.Module):
    def forward(self, x):
        CALLS.append(1)
        return x * len(CALLS)
def get_inputs():
    return [torch.randn(3, 8)]
"""
    task = open_task(tmp_path, source)
    assert graph_of(task).nodes[0].op == OPAQUE
    assert task.unexportable is not None
    assert "computes something else" in task.unexportable.why


MERGED_HEADS = """
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x).view(4, 30)
def get_inputs():
    return [torch.randn(4, 5, 6)]
"""


def test_nodes_run_on_operands_of_another_layout_than_the_traces(tmp_path: Path) -> None:
    exported = open_task(tmp_path, MERGED_HEADS).full.exported
    (source,) = exported.sources
    turned = torch.randn(4, 6, 5).transpose(1, 2)
    values = run_nodes(exported.graph["nodes"], {source: turned}, torch.device("cpu"))
    assert torch.equal(values[exported.graph["outputs"][0]], torch.relu(turned).reshape(4, 30))


@pytest.mark.parametrize("transposed", [False, True])
def test_on_a_gpu_a_convolution_s_bias_stands_apart(transposed: bool) -> None:
    layer = torch.nn.ConvTranspose2d(3, 4, 3, 2) if transposed else torch.nn.Conv2d(3, 4, 3, padding="same")
    x = torch.randn(2, 3, 6, 6)
    program = torch.export.export(layer, (x,))
    for device, count in (("cpu", 1), ("cuda", 3)):
        table = decompositions.table(torch.device(device))
        apart = program.run_decompositions(table)
        calls = [node for node in apart.graph.nodes if node.op == "call_function"]
        assert len(calls) == count
        torch.testing.assert_close(apart.module()(x), layer(x))
    alone = torch.export.export(layer, (x[0],)).run_decompositions(table)  # no batch: it stays whole
    assert len([node for node in alone.graph.nodes if node.op == "call_function"]) == 1


def test_pytorch_lists_its_operators_once_for_all_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    internals, listed = torch._export.utils, []
    monkeypatch.setattr(internals, "_materialize_cpp_cia_ops", lambda: listed.append(1))
    before = internals._materialize_cpp_cia_ops
    with decompositions.operators_listed_once():
        internals._collect_all_valid_cia_ops()
        internals._collect_all_valid_cia_ops()
    assert len(listed) == 1
    assert internals._materialize_cpp_cia_ops is before, "operators that are registered later are seen"
    monkeypatch.delattr(internals, "_materialize_cpp_cia_ops")
    with decompositions.operators_listed_once():
        assert not hasattr(internals, "_materialize_cpp_cia_ops")
