"""What a candidate is compared with: its slots, and what every target can do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from .repair import repaired_state, signed_arguments
from .task import Task
from .template import tensor_leaves
from .variants import FULL

Tensor = torch.Tensor


@dataclass(frozen=True)
class Slot:
    """One tensor argument of a candidate."""

    name: str
    """Value id in the graph: an identifier."""
    kind: str
    """``activation``, ``parameter``, ``buffer`` or ``constant``; an output is an activation or a buffer."""
    dtype: torch.dtype
    target: str = ""
    """Name in ``state_dict`` of a parameter or buffer, of forward's argument for an input."""


class Target(Protocol):
    """One thing to be computed: by a candidate, by the reference, and in float64."""

    inputs: list[Slot]
    """In the ABI's order: activations, parameters, buffers and constants."""
    outputs: list[Slot]
    """Results, then the new values of changed buffers."""
    ints: list[int]
    floats: list[float]
    random: list[str]
    """Ids of nodes whose results depend on the generator; empty for a deterministic target."""
    narrowed: set[str]
    """Operators that had no float64 kernel so far; they ran in the highest precision available."""

    def draw(self, variant: str, seed: int) -> list[Tensor]:
        """Input values that the reference itself meets under `seed`; its state as it is now."""
        ...

    def repaired(self, variant: str, seed: int) -> list[Tensor]:
        """As `draw`, but on repaired weights and signed inputs (`repair`): results tell right from wrong."""
        ...

    def evaluate(self, tensors: Sequence[Tensor], precision: str, variant: str = FULL) -> list[Tensor]:
        """The outputs for any input values of the variant's shapes; `tensors` are left alone.

        Args:
            precision: ``own``, under the user's flags, or ``f64``, where every floating value is float64.
        """
        ...

    def reduction(self, variant: str) -> int:
        """Length of the longest sum among its operators; 0 when they are not known."""
        ...

    def operators(self) -> set[str]:
        """Names of all its operators."""
        ...


def repaired_draw(task: Task, variant: str, seed: int) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Signed inputs of a variant, and the weights and statistics that go with them."""
    args = signed_arguments(task.variant(variant).draw(seed), seed)
    return tensor_leaves(args), repaired_state(task.reference, args, seed)


def unaliased(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[Tensor]:
    """`outputs`, with copies of those that share memory with an input or with an earlier output."""
    taken = {tensor.untyped_storage().data_ptr() for tensor in inputs}
    fresh = []
    for output in outputs:
        address = output.untyped_storage().data_ptr()
        fresh.append(output.clone() if address in taken else output)
        taken.add(address)
    return fresh
