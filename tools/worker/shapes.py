"""Which extents of the inputs can change: passes over shapes alone, compared operator by operator."""

from collections.abc import Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from .cost import tensors_in
from .faults import Fault, silent_logs
from .reference import Reference
from .template import Template

Shapes = list[tuple[int, ...]]
Dim = tuple[int, int]
"""Position of a tensor among the inputs, and one of its dimensions."""
Group = tuple[Dim, ...]
"""Dimensions that change together."""

_MOST_SINGLES = 6


class _Trace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records what must not change between shapes: operators, ranks, and which operands broadcast."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[tuple[str, list[int]]] = []
        self.whole: list[list[bool]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        results, read = tensors_in(result), tensors_in(args)
        self.calls.append((str(func), [tensor.dim() for tensor in (*results, *read)]))
        pointwise = torch.Tag.pointwise in func.tags and len(results) == 1
        self.whole.append(_whole(read, results[0]) if pointwise else [])
        return result

    def agrees(self, other: "_Trace") -> bool:
        """Same operators and ranks; what did not broadcast here does not broadcast in `other`."""
        return self.calls == other.calls and all(
            not here or there
            for one, two in zip(self.whole, other.whole, strict=True)
            for here, there in zip(one, two, strict=True)
        )


def _whole(read: Sequence[torch.Tensor], result: torch.Tensor) -> list[bool]:
    """For each operand's dimension: has it the result's extent?"""
    return [
        extent == total
        for tensor in read
        for extent, total in zip(reversed(tensor.shape), reversed(result.shape), strict=False)
    ]


class Probe:
    """Tries input shapes: without computing anything, or by running where values decide what happens.

    Args:
        tensors: forward's tensor arguments at full size.
        ranks: numbers of dimensions of forward's outputs.
    """

    def __init__(
        self,
        reference: Reference,
        template: Template,
        tensors: Sequence[torch.Tensor],
        ranks: Sequence[int],
    ) -> None:
        self.reference, self.template, self.tensors, self.ranks = reference, template, tensors, list(ranks)
        self.full: Shapes = [tuple(tensor.shape) for tensor in tensors]
        self.trace = self._dry_run(self.full)

    def accepts(self, shapes: Shapes) -> bool:
        """Does forward take these shapes, through the same operators as at full size?"""
        if self.trace is None:
            return self._runs(shapes)
        trace = self._dry_run(shapes)
        return trace is not None and self.trace.agrees(trace)

    def groups(self) -> list[Group]:
        """Dimensions of extent above 1, those of equal extent together, the largest extents first."""
        by_extent: dict[int, list[Dim]] = {}
        for position, shape in enumerate(self.full):
            for dim, extent in enumerate(shape):
                if extent > 1:
                    by_extent.setdefault(extent, []).append((position, dim))
        return [tuple(by_extent[extent]) for extent in sorted(by_extent, reverse=True)]

    def _runs(self, shapes: Shapes) -> bool:
        pieces = [
            tensor[tuple(slice(extent) for extent in shape)].contiguous()
            for tensor, shape in zip(self.tensors, shapes, strict=True)
        ]
        try:
            outputs = self.reference.forward(self.template.fill(pieces)).outputs
        except Fault:
            return False
        full = [output for output in outputs if output.numel() > 0]
        return [output.dim() for output in full] == self.ranks

    def _dry_run(self, shapes: Shapes) -> _Trace | None:
        device = self.reference.device
        with silent_logs(), FakeTensorMode(allow_non_fake_inputs=True) as mode:
            fakes = [
                torch.empty(shape, dtype=tensor.dtype, device=device)
                for shape, tensor in zip(shapes, self.tensors, strict=True)
            ]
            trace = _Trace()
            try:
                outputs = self.reference.dry_forward(self.template.fill(fakes), mode.from_tensor, trace)
            except Exception:  # whatever the user's code does when shapes do not fit
                return None
        return trace if all(output.numel() > 0 for output in tensors_in(outputs)) else None


def parts(group: Group) -> list[Group]:
    """Finer groups to try when `group` cannot change as a whole."""
    leading = tuple(dim for dim in group if dim[1] == 0)
    other = tuple(dim for dim in group if dim[1] != 0)
    if leading and other:
        return [leading, other]
    return [(dim,) for dim in group] if 1 < len(group) <= _MOST_SINGLES else []


def resized(shapes: Shapes, group: Group, extent: int) -> Shapes:
    """`shapes` with the group's dimensions set to `extent`."""
    changed = [list(shape) for shape in shapes]
    for position, dim in group:
        changed[position][dim] = extent
    return [tuple(shape) for shape in changed]
