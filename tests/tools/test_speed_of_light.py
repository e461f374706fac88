"""The bound counts what every program must move, and nothing that one could do without."""

from pathlib import Path
from typing import Any

import pytest

from stitch_tui.tools.graph import Graph, region_of
from stitch_tui.tools.roofline import Peaks
from stitch_tui.tools.speed_of_light import L2_BYTES, least_us, least_work
from stitch_tui.tools.worker.reference import Options, Reference
from stitch_tui.tools.worker.task import Task

SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(16, 8)
        self.next = nn.Linear(8, 4)
        self.table = nn.Embedding(100, 8)
        self.conv = nn.Conv2d(3, 4, 3, STRIDE)
        self.gain = nn.Parameter(torch.ones(16))

    def forward(self, x):
        return BODY

def get_inputs():
    return [INPUT]
"""
X = "torch.randn(32, 16)"
X_BYTES, LINE_BYTES = 32 * 16 * 4, 16 * 8 * 4


def some(cases: list[Any]) -> list[Any]:
    """Every third of similar cases by default, the others as slow ones: each exports a module."""
    return [
        case
        if k % 3 == 0
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
        for k, case in enumerate(cases)
    ]


def graph_of(folder: Path, body: str, inputs: str = X, stride: int = 1) -> Graph:
    text = SOURCE.replace("BODY", body).replace("INPUT", inputs).replace("STRIDE", str(stride))
    (folder / "model.py").write_text(text)
    task = Task(Reference.open(Options(folder, "model.py", "")))
    assert task.full.exported.graph["nodes"]
    return Graph.model_validate(task.full.exported.graph)


@pytest.mark.parametrize(
    ("body", "read"),
    some(
        [
            ("torch.relu(x)", X_BYTES),
            ("torch.relu(x).t().reshape(8, 64) * 2", X_BYTES),
            ("torch.softmax(x, 1) + x.sum()", X_BYTES),
            ("F.gelu(self.line(x))", X_BYTES + LINE_BYTES),
            ("self.line(x).sum(1)", X_BYTES),
            ("self.next(self.line(x))", X_BYTES + 8 * 4 * 4),
            ("self.next(torch.relu(self.line(x)))", X_BYTES + 8 * 4 * 4),
            ("F.layer_norm(x, (16,)) * self.gain", X_BYTES),
            ("torch.matmul(x, x.t())", X_BYTES),
            ("torch.cat([x, x * 3], 1)", X_BYTES),
        ]
    ),
)
def test_what_must_be_read(tmp_path: Path, body: str, read: int) -> None:
    graph = graph_of(tmp_path, body)
    assert least_work(graph, region_of(graph, graph.node)).read == read


@pytest.mark.parametrize(
    "body",
    some(
        [
            "x[:, :3]",
            "torch.relu(x)[::2]",
            "(x * 2).chunk(4, 1)[1]",
            "x.narrow(0, 3, 5).exp()",
            "x[torch.tensor([1, 1, 2])]",
            "torch.index_select(x, 0, torch.tensor([3]))",
            "torch.gather(x, 1, torch.zeros(32, 1, dtype=torch.long))",
            "torch.tril(x)",
            "x.masked_fill(torch.eye(32, 16) == 0, 0.0)",
            "torch.where(torch.eye(32, 16) > 0, x, 0.0)",
            "torch.diag(x) * 2",
            "x - x",
            "x * 0",
            "F.max_pool1d(x, 2, 4)",
            "F.dropout(x, 0.5, training=True)",
            "torch.clamp(torch.clamp(x, max=0.0), min=0.0)",
            "torch.softmax(x.unsqueeze(1), 1)",
            "self.table(torch.clamp(x[:, 0].abs().long(), 0, 9))",
        ]
    ),
)
def test_what_need_not_be_read(tmp_path: Path, body: str) -> None:
    graph = graph_of(tmp_path, body)
    assert least_work(graph, region_of(graph, graph.node)).read == 0


@pytest.mark.parametrize(("stride", "read"), [(1, 2 * 3 * 9 * 9 * 4), (4, 0)])
def test_a_strided_convolution_may_skip_pixels(tmp_path: Path, stride: int, read: int) -> None:
    graph = graph_of(tmp_path, "self.conv(x)", "torch.randn(2, 3, 9, 9)", stride)
    assert least_work(graph, region_of(graph, graph.node)).read == read


def test_an_expanded_input_is_not_counted(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, "torch.relu(x)", "torch.randn(1, 16).expand(32, 16)")
    assert least_work(graph, region_of(graph, graph.node)).read == 0


@pytest.mark.parametrize(
    ("body", "counted"),
    [
        ("torch.relu(self.line(x))", 1),
        ("self.line(x).mean()", 0),
        ("self.next(self.line(x))", 0),
        ("torch.triu(x @ x.t())", 0),
        ("x @ x.t()", 0),
    ],
)
def test_products_that_could_be_reordered_or_halved_are_not_counted(
    tmp_path: Path, body: str, counted: int
) -> None:
    graph = graph_of(tmp_path, body)
    flops = least_work(graph, region_of(graph, graph.node)).flops
    assert flops == counted * 2 * 32 * 16 * 8


def test_results_that_fit_the_cache_cost_nothing(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, "torch.relu(x)")
    region = region_of(graph, graph.node)
    peaks = Peaks(1e9, 1e15, 1e15, 1e15, 1e15, "made up")
    assert least_work(graph, region).written == X_BYTES < L2_BYTES
    assert least_us(graph, region, peaks) == pytest.approx(X_BYTES / 1e9 * 1e6)
    assert least_us(graph, region, None) is None
