"""What a plan's subtasks weigh, whoever planned them: share of the time, bound of the speedup, roofline."""

from stitch_tui.agents.builtin import cost
from stitch_tui.agents.prompt_text import shares
from stitch_tui.agents.state import Plan, Subtask
from stitch_tui.tools.graph import Graph
from stitch_tui.tools.roofline import Peaks


def weighed(plan: Plan, graph: Graph, peaks: Peaks | None) -> Plan:
    """The plan with figures for the subtasks that have none; those that were weighed keep theirs.

    Args:
        graph: with the times of its nodes.
        peaks: of the device; None where they are not known, and then there is no roofline.
    """
    share = shares(graph)
    subtasks = tuple(_weighed(subtask, graph, share, peaks) for subtask in plan.subtasks)
    return plan.model_copy(update={"subtasks": subtasks})


def _weighed(subtask: Subtask, graph: Graph, share: dict[str, float], peaks: Peaks | None) -> Subtask:
    region = subtask.region
    figures: dict[str, object] = {}
    if not region.outputs:  # nothing that a kernel computes
        return subtask
    if subtask.share is None:
        part = min(sum(share[node] for node in region.nodes), 1.0)
        figures = {"share": part, "amdahl": 1 / (1 - part) if part < 1 - 1e-9 else None}
    if subtask.work is None:
        figures["work"] = cost.work(graph, region, peaks)
        figures["bound_us"] = cost.bound_us(graph, region, peaks)
    return subtask.model_copy(update=figures)
