"""A region of the reference's graph as what a candidate is compared with."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .encoding import DTYPES
from .export import OPAQUE, Exported, Json
from .interpreter import Values, cast_floats, operands, operator_of, run_nodes
from .randomness import is_random
from .reduction import longest_sum
from .reference import seed_everything
from .slots import Slot, repaired_draw, unaliased
from .sources import source_values
from .task import Task
from .variants import FULL, Variant

Tensor = torch.Tensor


class RegionTarget:
    """A region of the graph, evaluated alone through torch's operators by name."""

    def __init__(self, task: Task, region: Mapping[str, Any]) -> None:
        self.task, self.region = task, region
        self.ints, self.floats = list(region.get("ints", ())), list(region.get("floats", ()))
        full = task.full.exported
        new_buffers = set(full.graph["mutations"].values()) - set(full.graph["outputs"])
        self.inputs = [_slot(full, value) for value in region["inputs"]]
        self.outputs = [
            _slot(full, value, kind="buffer" if value in new_buffers else "activation")
            for value in region["outputs"]
        ]
        self.random = [node["id"] for node in self._nodes(task.full) if is_random(node)]
        self.narrowed: set[str] = set()

    def draw(self, variant: str, seed: int) -> list[Tensor]:
        return self._met(variant, seed, self.task.variant(variant).tensors(seed), None)

    def repaired(self, variant: str, seed: int) -> list[Tensor]:
        inputs, state = repaired_draw(self.task, variant, seed)
        return self._met(variant, seed, inputs, state)

    def _met(
        self, variant: str, seed: int, inputs: Sequence[Tensor], state: Mapping[str, Tensor] | None
    ) -> list[Tensor]:
        """The values at the border when the reference runs on these inputs and this state."""
        chosen = self.task.variant(variant)
        values = source_values(self.task.reference, chosen.exported, inputs, state)
        border = self.region["inputs"]
        self.task.reference.set_flags()
        seed_everything(seed)
        with torch.no_grad():
            run_nodes(ancestors(chosen.exported, border), values, self.task.reference.device, keep=border)
        return [values[value].clone() for value in border]

    def evaluate(self, tensors: Sequence[Tensor], precision: str, variant: str = FULL) -> list[Tensor]:
        widen = precision == "f64"
        given: list[Tensor] = [cast_floats(tensor, torch.float64) if widen else tensor for tensor in tensors]
        values: Values = dict(zip(self.region["inputs"], given, strict=True))
        self.task.reference.set_flags()
        with torch.no_grad():
            run_nodes(
                self._nodes(self.task.variant(variant)),
                values,
                self.task.reference.device,
                widen=widen,
                narrowed=self.narrowed,
                keep=self.region["outputs"],
            )
        return unaliased([values[value] for value in self.region["outputs"]], given)

    def reduction(self, variant: str) -> int:
        chosen = self.task.variant(variant)
        return longest_sum(self._nodes(chosen), chosen.exported.spec)

    def differing(self, variant: str) -> list[str]:
        """Arithmetic nodes that compute with other numbers in `variant` than at full size.

        Such a number is an extent in disguise (``sum / x.shape[0]``), and no kernel is told of it.
        """
        there = self.task.variant(variant).exported.nodes
        full = self._nodes(self.task.full)
        return [node["id"] for node in full if _numbers(node) != _numbers(there[node["id"]])]

    def operators(self) -> set[str]:
        return {node["op"] for node in self._nodes(self.task.full)}

    def _nodes(self, variant: Variant) -> list[Json]:
        return [variant.exported.nodes[node] for node in self.region["nodes"]]


def ancestors(exported: Exported, values: Sequence[str]) -> list[Json]:
    """The nodes that `values` need, in order."""
    wanted, kept = set(values), []
    for node in reversed(exported.graph["nodes"]):
        if node["id"] in wanted:
            wanted.update(operands(node))
            kept.append(node)
    return kept[::-1]


def _slot(exported: Exported, value: str, kind: str | None = None) -> Slot:
    source = exported.sources.get(value)
    own = "activation" if source is None or source["kind"] == "input" else source["kind"]
    return Slot(
        name=value,
        kind=kind or own,
        dtype=DTYPES[exported.spec(value)["dtype"]],
        target=source["target"] if source else "",
    )


def _numbers(node: Mapping[str, Any]) -> list[Any]:
    """What a pointwise node computes with beside tensors."""
    if node["op"] in ("getitem", OPAQUE) or torch.Tag.pointwise not in operator_of(node["op"]).tags:
        return []
    return [given for given in (*node["args"], *node["kwargs"].values()) if isinstance(given, (int, float))]
