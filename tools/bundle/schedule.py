"""The order in which a program runs its kernels and its untouched nodes."""

import heapq
from collections.abc import Sequence

from stitch_tui.tools.bundle.contents import Kernel
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.graph import Graph, Node

Step = Kernel | Node
"""One call of the program."""


def schedule(graph: Graph, kernels: Sequence[Kernel]) -> tuple[Step, ...]:
    """Kernels and the nodes that none of them owns, each after all it reads, else in graph order.

    Raises:
        UsageError: unknown nodes, two kernels with one node, or kernels that wait for each other.
    """
    owner: dict[str, Step] = {node.id: node for node in graph.nodes}
    for kernel in kernels:
        for name in kernel.region.nodes:
            _claim(owner, name, kernel)
    steps = {step.id if isinstance(step, Node) else f"{step.id}.cu": step for step in owner.values()}
    key = {value: _key(step) for value, step in owner.items()}
    waits: dict[str, set[str]] = {name: set() for name in steps}
    for node in graph.nodes:
        mine = key[node.id]
        waits[mine] |= {key[o] for o in node.operands if o in key and key[o] != mine}
    return tuple(steps[name] for name in _ordered(waits, {name: i for i, name in enumerate(steps)}))


def reads(step: Step) -> tuple[str, ...]:
    """Ids of the values that a step takes."""
    return step.operands if isinstance(step, Node) else step.region.inputs


def writes(step: Step) -> tuple[str, ...]:
    """Ids of the values that a step makes."""
    return (step.id,) if isinstance(step, Node) else step.region.outputs


def _key(step: Step) -> str:
    return step.id if isinstance(step, Node) else f"{step.id}.cu"


def _claim(owner: dict[str, Step], name: str, kernel: Kernel) -> None:
    before = owner.get(name)
    if before is None:
        raise UsageError(f"subtask {kernel.id} owns {name}, which the graph does not have")
    if isinstance(before, Kernel):
        raise UsageError(f"subtasks {before.id} and {kernel.id} both own {name}")
    owner[name] = kernel


def _ordered(waits: dict[str, set[str]], rank: dict[str, int]) -> list[str]:
    """Topological order; of those that could come next, the first by `rank`."""
    users: dict[str, list[str]] = {name: [] for name in waits}
    for name, before in waits.items():
        for other in before:
            users[other].append(name)
    missing = {name: len(before) for name, before in waits.items()}
    ready = [(rank[name], name) for name, count in missing.items() if count == 0]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        order.append(heapq.heappop(ready)[1])
        for user in users[order[-1]]:
            missing[user] -= 1
            if missing[user] == 0:
                heapq.heappush(ready, (rank[user], user))
    if stuck := sorted(name for name, count in missing.items() if count and name.endswith(".cu")):
        raise UsageError(f"kernels wait for each other: {', '.join(stuck)}")
    return order
