"""A model's plan as a plan of ours: what is added, named and left out."""

import pytest
from sessions import two_layers

from stitch_tui.agents.plan_answer import PlanAnswer, checked_plan
from stitch_tui.agents.state import Task
from stitch_tui.agents.structured import Rejected

GRAPH = two_layers()


def answered(title: str = "both layers", **more: str) -> PlanAnswer:
    subtasks = [{"title": title, "nodes": ["a", "b", "c", "d", "e"]}]
    return PlanAnswer.model_validate({"subtasks": subtasks, **more})


def test_a_title_that_repeats_the_prompts_example_is_replaced_by_the_operators() -> None:
    assert checked_plan(GRAPH, answered("short name")).subtasks[0].title == "linear+relu+linear+relu+sum"
    assert checked_plan(GRAPH, answered("")).subtasks[0].title == "linear+relu+linear+relu+sum"
    assert checked_plan(GRAPH, answered()).subtasks[0].title == "both layers"


def test_inputs_and_weights_among_the_nodes_are_passed_over() -> None:
    names = [source.id for source in GRAPH.sources]
    assert names
    answer = answered().model_copy(deep=True)
    answer.subtasks[0].nodes += names
    assert checked_plan(GRAPH, answer).subtasks == checked_plan(GRAPH, answered()).subtasks
    answer.subtasks[0].nodes = names
    with pytest.raises(Rejected, match="subtask 1"):
        checked_plan(GRAPH, answer)


def test_what_the_host_should_do_is_a_subtask_behind_the_kernels() -> None:
    plan = checked_plan(GRAPH, answered(host="one CUDA graph"))
    assert [s.id for s in plan.subtasks] == ["s01", "host"]
    assert plan.host is not None
    assert (plan.host.task, plan.host.strategy, plan.host.region.nodes) == (
        Task.PROGRAM,
        "one CUDA graph",
        (),
    )
    assert checked_plan(GRAPH, answered()).host is None
    anew = checked_plan(GRAPH, PlanAnswer(subtasks=[], host="again"), taken=[plan.subtasks[0].region])
    assert anew.subtasks == (), "a plan anew is about the nodes of a kernel"
