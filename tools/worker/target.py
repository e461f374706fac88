"""Which target a description names."""

from collections.abc import Mapping
from typing import Any

from .export import OPAQUE
from .faults import Fault
from .program_target import ProgramTarget
from .region_target import RegionTarget
from .slots import Target
from .task import Task


def target_of(task: Task, description: Mapping[str, Any]) -> Target:
    """The target that ``{"kind": "program"}`` or ``{"kind": "region", "region": Region}`` names.

    Raises:
        Fault: the region names nodes that the graph does not have.
    """
    if description["kind"] == "program":
        return ProgramTarget(task)
    region = description["region"]
    unknown = set(region["nodes"]) - task.full.exported.nodes.keys()
    if unknown:
        raise Fault("usage", f"the reference has no node {', '.join(sorted(unknown))}")
    return ProgramTarget(task) if OPAQUE in region["nodes"] else RegionTarget(task, region)
