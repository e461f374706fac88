"""Places for intermediates: which kernel results may share memory, and where they lie."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stitch_tui.tools.bundle.contents import Kernel
from stitch_tui.tools.bundle.schedule import Step, reads, writes
from stitch_tui.tools.graph import Graph

ALIGNMENT = 256
"""Bytes; what ``stitch.h`` promises for contiguous tensors."""


@dataclass(frozen=True)
class Lifetime:
    """Steps from the one that writes a block to the last that may read it, inclusive; size in bytes."""

    first: int
    last: int
    size: int


def place(lifetimes: Mapping[str, Lifetime]) -> tuple[dict[str, int], int]:
    """Byte offsets such that blocks alive at the same step never overlap, and the bytes of the whole.

    Greedy by size, lowest offset that is free; within a few percent of the least for chains.
    """
    offsets: dict[str, int] = {}
    for name in sorted(lifetimes, key=lambda name: (-lifetimes[name].size, lifetimes[name].first, name)):
        mine, offset = lifetimes[name], 0
        beside = [o for o in offsets if lifetimes[o].first <= mine.last and mine.first <= lifetimes[o].last]
        for other in sorted(beside, key=offsets.__getitem__):
            if offset + mine.size <= offsets[other]:
                break
            offset = max(offset, _aligned(offsets[other] + lifetimes[other].size))
        offsets[name] = offset
    return offsets, max((offsets[name] + lifetimes[name].size for name in offsets), default=0)


def lifetimes(graph: Graph, steps: Sequence[Step]) -> dict[str, Lifetime]:
    """Lifetimes of the kernel results that nothing outside of the program can still see afterwards.

    A PyTorch operator may return a view of what it reads, so a value lives as long as whatever
    PyTorch derives from it, and one that an output derives from is not placed at all.
    """
    position = {value: i for i, step in enumerate(steps) for value in writes(step)}
    last = position | {new: len(steps) for new in graph.mutations.values() if new in position}
    escapes = set(graph.outputs)
    for index in range(len(steps) - 1, -1, -1):
        step = steps[index]
        made = writes(step)
        until = index if isinstance(step, Kernel) else max(last[value] for value in made)
        for value in reads(step):
            if value in position:
                last[value] = max(last[value], until)
        if not isinstance(step, Kernel) and escapes.intersection(made):
            escapes.update(reads(step))
    return {
        value: Lifetime(position[value], last[value], _aligned(graph.spec(value).nbytes))
        for step in steps
        if isinstance(step, Kernel)
        for value in step.region.outputs
        if value not in escapes
    }


def _aligned(count: int) -> int:
    return -(-count // ALIGNMENT) * ALIGNMENT
