"""Small shape variants of a reference: the user's ``get_small_inputs()``, else found by trying."""

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .encoding import encode_spec
from .export import Exported, Json
from .faults import Fault
from .reference import Reference
from .shapes import Group, Probe, Shapes, parts, resized
from .template import Template, tensor_leaves

FULL = "full"
"""The variant of ``get_inputs()``."""
EXTENTS = {
    "small_odd": (5, 7, 11, 13, 17, 23, 31, 37, 67, 131, 3),
    "ones": (1,),
    "small_even": (6, 10, 14, 22, 26, 34, 38, 70, 134, 4, 2),
    "medium": (67, 37, 41, 43, 131, 227),
}
"""Extents that a variant tries, in this order; each group of dimensions gets another one."""

_HALVED = (EXTENTS["small_odd"], EXTENTS["small_even"])
"""Where nothing of the list suits (patches, strides), these try the original divided by powers of two."""

MOST_ELEMENTS = 1 << 20
"""A variant whose largest input has more elements than this is not small."""

REDRAW_BYTES = 64 << 20
"""Larger inputs are drawn once; their small variants are cut out at places that the seed chooses."""


@dataclass(frozen=True)
class Variant:
    """One set of input shapes: how to draw them, and the graph for exactly these shapes."""

    name: str
    draw: Callable[[int], list[Any]]
    """Forward's arguments under a seed, from the task's own distribution."""
    template: Template
    inputs: list[Json]
    """Specs of the tensor leaves of the arguments."""
    exported: Exported

    def tensors(self, seed: int) -> list[torch.Tensor]:
        """The tensor leaves of `draw`."""
        return tensor_leaves(self.draw(seed))


@dataclass(frozen=True)
class Candidate:
    """A variant that has not been run yet."""

    name: str
    draw: Callable[[int], list[Any]]


def given(reference: Reference, template: Template) -> list[Candidate]:
    """Variants from the reference's own ``get_small_inputs()``.

    Raises:
        Fault: what it returns does not look like forward's arguments, or a list of those.
    """
    drawn = reference.call_inputs("get_small_inputs", reference.options.seed)
    if template.fits(drawn):
        return [Candidate("small_0", lambda seed: _list(reference.call_inputs("get_small_inputs", seed)))]
    if not drawn or not all(template.fits(args) for args in drawn):
        assert reference.loaded.get_small_inputs
        raise Fault(
            "reference",
            "get_small_inputs() returns something else than get_inputs() does",
            where=reference.loaded.line_of(reference.loaded.get_small_inputs),
            advice="return one list of forward's arguments, or a list of such lists",
        )

    def nth(index: int) -> Callable[[int], list[Any]]:
        return lambda seed: _list(reference.call_inputs("get_small_inputs", seed)[index])

    return [Candidate(f"small_{index}", nth(index)) for index in range(len(drawn))]


def found(
    reference: Reference,
    template: Template,
    args: Sequence[Any],
    ranks: Sequence[int],
    deadline: float,
) -> Iterator[Candidate]:
    """Variants found by shrinking the extents of ``get_inputs()`` that can change on their own.

    Args:
        args: what ``get_inputs()`` returned.
        ranks: numbers of dimensions of forward's outputs.
        deadline: on the monotonic clock; the search ends there.
    """
    tensors = tensor_leaves(args)
    probe = Probe(reference, template, tensors, ranks)
    groups = _free(probe, probe.groups(), deadline)
    seen: list[Shapes] = [probe.full]
    for name, extents in EXTENTS.items():
        shapes = _shrunk(probe, groups, extents, deadline)
        if shapes not in seen and max(map(math.prod, shapes)) <= MOST_ELEMENTS:
            seen.append(shapes)
            yield Candidate(name, _cropping(reference, template, args, probe.full, shapes))


def _free(probe: Probe, groups: Sequence[Group], deadline: float) -> list[Group]:
    """The groups, or parts of them, that some other extent suits."""
    free: list[Group] = []
    for group in groups:
        if time.monotonic() > deadline:
            break
        if any(probe.accepts(resized(probe.full, group, extent)) for extent in _probes(probe, group)):
            free.append(group)
        else:
            free += _free(probe, parts(group), deadline)
    return free


def _probes(probe: Probe, group: Group) -> list[int]:
    """Three extents that tell whether a group can change at all."""
    extent = _extent(probe.full, group)
    return sorted({min(5, extent - 1), extent // 2, max(1, extent - 1)} - {1}) or [1]


def _shrunk(probe: Probe, groups: Sequence[Group], extents: Sequence[int], deadline: float) -> Shapes:
    """Full shapes with each free group set to the first extent that suits it, beside those set before."""
    shapes, taken = probe.full, set[int]()
    for group in groups:
        original = _extent(probe.full, group)
        halves = [original >> shift for shift in (4, 3, 2, 1)] if extents in _HALVED else []
        for extent in (*extents, *(half for half in halves if half > 1)):
            if time.monotonic() > deadline:
                return shapes
            unused = extent not in taken or extent == 1
            if 0 < extent < original and unused and probe.accepts(resized(shapes, group, extent)):
                shapes = resized(shapes, group, extent)
                taken.add(extent)
                break
    return shapes


def _extent(shapes: Shapes, group: Group) -> int:
    position, dim = group[0]
    return shapes[position][dim]


def _cropping(
    reference: Reference, template: Template, args: Sequence[Any], full: Shapes, shapes: Shapes
) -> Callable[[int], list[Any]]:
    """Draw at full size, then cut: what is independent, sorted or triangular stays so."""
    size = sum(tensor.nbytes for tensor in tensor_leaves(args))

    def draw(seed: int) -> list[Any]:
        large = size > REDRAW_BYTES
        whole, chooser = args if large else reference.draw_inputs(seed), random.Random(seed)
        starts: dict[tuple[int, int], int] = {}
        pieces = []
        for tensor, before, after in zip(tensor_leaves(whole), full, shapes, strict=True):
            for dim, (old, new) in enumerate(zip(before, after, strict=True)):
                if (old, new) not in starts:
                    starts[old, new] = chooser.randrange(old - new + 1) if large else 0
                tensor = tensor.narrow(dim, starts[old, new], new)
            pieces.append(tensor.clone(memory_format=torch.contiguous_format))
        return template.fill(pieces)

    return draw


def specs_of(args: Sequence[Any]) -> list[Json]:
    """Specs of the tensor leaves of forward's arguments."""
    return [encode_spec(leaf) for leaf in tensor_leaves(args)]


def _list(args: Any) -> list[Any]:
    return list(args)
