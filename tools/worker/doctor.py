"""A first look at a reference: what would make its verdicts worthless.  Notes, never errors."""

from collections.abc import Sequence

import torch

from . import numerics
from .reference import Outcome
from .task import LONGEST_FORWARD_S, Task
from .template import Template, tensor_leaves

Tensor = torch.Tensor
Note = dict[str, str]


def examine(task: Task) -> list[Note]:
    """What a person should know before trusting a comparison; each note has a ``kind`` and a ``text``."""
    notes = [{"kind": "reference", "text": text} for text in task.reference.notes]
    notes += _outputs(task.first.outputs)
    if task.first_seconds > LONGEST_FORWARD_S:
        text = f"one forward pass takes {task.first_seconds:.0f} s: not repeated to look for randomness"
        return [*notes, {"kind": "unexamined", "text": text}]
    return notes + _randomness(task) + _dependence(task)


def _outputs(outputs: Sequence[Tensor]) -> list[Note]:
    notes = []
    for index, output in enumerate(outputs):
        if output.numel() == 0:
            notes.append({"kind": "empty", "text": f"output {index} has no elements"})
        elif output.is_floating_point() and not bool(output.isfinite().all()):
            notes.append({"kind": "nonfinite", "text": f"output {index} has NaN or infinite elements"})
        elif not bool(output.any()):
            notes.append({"kind": "zero", "text": f"output {index} is all zeros"})
        elif output.numel() > 1 and bool((output == output.flatten()[0]).all()):
            notes.append({"kind": "constant", "text": f"output {index} has one value in all its elements"})
        elif output.is_floating_point() and (text := _below_tolerance(output)):
            notes.append({"kind": "below_tolerance", "text": f"output {index} {text}"})
    return notes


def _below_tolerance(output: Tensor) -> str:
    """What would be taken for the output, because it differs from it by less than tolerances; or empty."""
    mean = torch.full_like(output, float(output.double().mean()))
    if numerics.relative_error(mean, output) <= numerics.floor(output.dtype, reduction=1):
        return "varies by less than rounding: its mean in all elements would pass"
    if numerics.kernelbench_rule(torch.zeros_like(output), output):
        return "is so small that KernelBench's tolerance takes zeros for it; here errors count by its size"
    return ""


def _randomness(task: Task) -> list[Note]:
    again = task.run(task.first_args)
    if not _equal(task.first, again):
        text = "two runs with one seed differ: forward is not deterministic, or keeps state of its own"
        return [{"kind": "nondeterministic", "text": text}]
    other = task.run(task.first_args, seed=task.reference.options.seed + 1)
    if not _equal(task.first, other):
        text = "the output depends on the random generator (dropout, random tensors in forward)"
        return [{"kind": "random", "text": text}]
    return []


def _dependence(task: Task) -> list[Note]:
    """Does another draw of the inputs change anything?"""
    options = task.reference.options
    others = task.reference.call_inputs("get_inputs", options.seed + 1)
    notes = []
    leaves = list(zip(tensor_leaves(task.first_args), tensor_leaves(others), strict=False))
    if [spec.shape for spec, _ in leaves] != [spec.shape for _, spec in leaves]:
        text = "get_inputs() returns other shapes on each call: stitch keeps those of the first"
        return [{"kind": "varying_shapes", "text": text}]
    if leaves and all(torch.equal(one, other) for one, other in leaves):
        return [{"kind": "fixed_inputs", "text": "get_inputs() returns the same values on every call"}]
    if task.template.scalars != Template(others).scalars:
        text = "get_inputs() returns other numbers on each call: stitch keeps those of the first"
        notes.append({"kind": "varying_numbers", "text": text})
    if leaves and _equal(task.first, task.run(others)):
        notes.append({"kind": "independent", "text": "the output does not depend on the inputs"})
    return notes


def _equal(one: Outcome, other: Outcome) -> bool:
    return all(
        a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())
        for a, b in zip(one.outputs, other.outputs, strict=True)
    )
