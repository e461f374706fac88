"""Subtasks have their share and their place under the roofline, whoever planned them."""

import pytest
from sessions import two_layers

from stitch_tui.agents.plan_answer import LeftOut, PlanAnswer, PlannedSubtask, checked_plan
from stitch_tui.agents.state import Plan, Subtask
from stitch_tui.agents.weighing import weighed
from stitch_tui.tools.graph import Graph, region_of
from stitch_tui.tools.roofline import Peaks

PEAKS = Peaks(bandwidth=1e12, f64=1e13, f32=2e13, tf32=1e14, f16=4e14, source="a test")


@pytest.fixture
def graph() -> Graph:
    graph = two_layers()
    timed = tuple(node.model_copy(update={"time_us": 10.0}) for node in graph.nodes)
    return graph.model_copy(update={"nodes": timed})


def test_a_models_plan_has_a_roofline_too(graph: Graph) -> None:
    planned = PlannedSubtask(title="layer", nodes=["a", "b"], bottleneck="memory", kernels=["tiles"])
    rest = LeftOut(nodes=["c", "d", "e"], reason="later")
    answer = checked_plan(graph, PlanAnswer(subtasks=[planned], left=[rest]))
    [subtask] = weighed(answer, graph, PEAKS).subtasks
    assert subtask.work
    assert subtask.bound_us
    assert (subtask.share, subtask.work.flops, subtask.work.bytes_moved) == (0.4, 128 + 16, 3 * 64)
    assert (subtask.work.bandwidth, subtask.work.peak_flops) == (1e12, 1e14)


def test_a_persons_subtask_is_weighed_and_others_keep_their_figures(graph: Graph) -> None:
    added = Subtask(id="s02", title="sum", region=region_of(graph, ["e"]))
    known = Subtask(id="s01", title="x", region=region_of(graph, ["a"]), share=0.7, amdahl=3.0)
    first, second = weighed(Plan(subtasks=(known, added)), graph, PEAKS).subtasks
    assert (first.share, first.amdahl) == (0.7, 3.0)
    assert (second.share, second.amdahl) == (pytest.approx(0.2), pytest.approx(1.25))


def test_without_peaks_there_is_no_roofline(graph: Graph) -> None:
    added = Subtask(id="s02", title="sum", region=region_of(graph, ["e"]))
    [subtask] = weighed(Plan(subtasks=(added,)), graph, None).subtasks
    assert (subtask.work, subtask.bound_us, subtask.share) == (None, None, pytest.approx(0.2))
