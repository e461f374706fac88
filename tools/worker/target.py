"""What a check compares a candidate with: a region of the reference's graph, or the whole program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from .encoding import DTYPES, dtype_name
from .export import OPAQUE, Exported, Json
from .faults import Fault
from .interpreter import Values, cast_floats, operands, operator_of, run_nodes
from .randomness import is_random
from .reduction import longest_sum
from .reference import seed_everything
from .repair import repaired_state, signed_arguments
from .sources import source_values
from .task import Task
from .template import tensor_leaves
from .variants import Variant

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


@dataclass(frozen=True)
class Spec:
    """Shape, dtype and strides of a tensor."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    strides: tuple[int, ...] | None = None
    """In elements; None: contiguous."""

    @classmethod
    def of(cls, spec: Json) -> "Spec":
        strides = spec["strides"]
        return cls(tuple(spec["shape"]), DTYPES[spec["dtype"]], None if strides is None else tuple(strides))

    def as_json(self) -> Json:
        return {"shape": list(self.shape), "dtype": dtype_name(self.dtype), "strides": self.strides}


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

    def specs(self, variant: str) -> tuple[list[Spec], list[Spec]]:
        """Specs of inputs and of outputs for a shape variant."""
        ...

    def draw(self, variant: str, seed: int) -> list[Tensor]:
        """Input values that the reference itself meets under `seed`; its state as it is now."""
        ...

    def repaired(self, variant: str, seed: int) -> list[Tensor]:
        """As `draw`, but on repaired weights and signed inputs (`repair`): results tell right from wrong."""
        ...

    def evaluate(self, tensors: Sequence[Tensor], precision: str, variant: str = "full") -> list[Tensor]:
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

    def specs(self, variant: str) -> tuple[list[Spec], list[Spec]]:
        exported = self.task.variant(variant).exported
        return (
            [Spec.of(exported.spec(value)) for value in self.region["inputs"]],
            [Spec.of(exported.spec(value)) for value in self.region["outputs"]],
        )

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

    def evaluate(self, tensors: Sequence[Tensor], precision: str, variant: str = "full") -> list[Tensor]:
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


class ProgramTarget:
    """The whole forward pass, run by the module itself; in float64 by its graph where there is one."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.ints, self.floats = list[int](), list[float]()
        self.narrowed: set[str] = set()
        reference, exported = task.reference, task.full.exported
        names = reference.argument_names(task.first_args)
        self.inputs = [
            Slot(name, "activation", DTYPES[spec["dtype"]], name)
            for name, spec in zip(names, task.full.inputs, strict=True)
        ]
        for kind, state in (("parameter", reference.parameters), ("buffer", reference.buffers)):
            self.inputs += [
                Slot(f"{kind[0]}_{name.replace('.', '_')}", kind, value.dtype, name)
                for name, value in state.items()
            ]
        first = task.first
        self.outputs = [
            Slot(f"output_{index}", "activation", output.dtype) for index, output in enumerate(first.outputs)
        ]
        self.outputs += [
            Slot(f"new_{name.replace('.', '_')}", "buffer", first.buffers[name].dtype, name)
            for name in task.mutated
        ]
        self.random = [node["id"] for node in exported.graph["nodes"] if is_random(node)]

    def specs(self, variant: str) -> tuple[list[Spec], list[Spec]]:
        chosen = self.task.variant(variant)
        state = {**self.task.reference.parameters, **self.task.reference.buffers}
        graph = chosen.exported.graph
        by_target = {source["target"]: source["id"] for source in graph["sources"]}
        new_buffers = [
            chosen.exported.spec(graph["mutations"][by_target[name]]) for name in self.task.mutated
        ]
        return (
            [Spec.of(spec) for spec in chosen.inputs]
            + [Spec(tuple(value.shape), value.dtype) for value in state.values()],
            [Spec.of(chosen.exported.spec(value)) for value in graph["outputs"]]
            + [Spec.of(spec) for spec in new_buffers],
        )

    def draw(self, variant: str, seed: int) -> list[Tensor]:
        reference = self.task.reference
        state = (*reference.parameters.values(), *reference.buffers.values())
        return [tensor.clone() for tensor in (*self.task.variant(variant).tensors(seed), *state)]

    def repaired(self, variant: str, seed: int) -> list[Tensor]:
        inputs, state = repaired_draw(self.task, variant, seed)
        names = (*self.task.reference.parameters, *self.task.reference.buffers)
        return [*inputs, *(state[name].clone() for name in names)]

    def evaluate(self, tensors: Sequence[Tensor], precision: str, variant: str = "full") -> list[Tensor]:
        chosen = self.task.variant(variant)
        widen = precision == "f64"
        given: list[Tensor] = [cast_floats(tensor, torch.float64) if widen else tensor for tensor in tensors]
        self.task.reference.set_flags()
        if widen and self.task.unexportable is None:
            outputs = self._by_graph(chosen, given)
        else:
            outputs = self._by_module(chosen, given, widen)
        return unaliased(outputs, given)

    def reduction(self, variant: str) -> int:
        exported = self.task.variant(variant).exported
        return longest_sum(exported.graph["nodes"], exported.spec)

    def operators(self) -> set[str]:
        return {node["op"] for node in self.task.full.exported.graph["nodes"]}

    def _state(self, tensors: Sequence[Tensor], chosen: Variant) -> dict[str, Tensor]:
        count = len(chosen.inputs)
        return {slot.target: value for slot, value in zip(self.inputs[count:], tensors[count:], strict=True)}

    def _by_module(self, chosen: Variant, tensors: Sequence[Tensor], widen: bool) -> list[Tensor]:
        args = chosen.template.fill(tensors[: len(chosen.inputs)])
        state = self._state(tensors, chosen)
        usual = torch.get_default_dtype()
        try:
            torch.set_default_dtype(torch.float64 if widen else usual)
            outcome = self.task.reference.forward(args, state, torch.float64 if widen else None)
        except Fault:
            if not widen:
                raise
            torch.set_default_dtype(usual)
            self.narrowed.add("the whole program")
            return cast_floats(self._by_module(chosen, self._own(tensors), False), torch.float64)  # type: ignore[no-any-return]
        finally:
            torch.set_default_dtype(usual)
        return [*outcome.outputs, *(outcome.buffers[name] for name in self.task.mutated)]

    def _own(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        return [tensor.to(slot.dtype) for tensor, slot in zip(tensors, self.inputs, strict=True)]

    def _by_graph(self, chosen: Variant, tensors: Sequence[Tensor]) -> list[Tensor]:
        exported, count = chosen.exported, len(chosen.inputs)
        values = source_values(
            self.task.reference, exported, tensors[:count], self._state(tensors, chosen), widen=True
        )
        by_target = {source["target"]: source["id"] for source in exported.graph["sources"]}
        mutations = exported.graph["mutations"]
        keep = [*exported.graph["outputs"], *(mutations[by_target[name]] for name in self.task.mutated)]
        device = self.task.reference.device
        with torch.no_grad():
            run_nodes(exported.graph["nodes"], values, device, widen=True, narrowed=self.narrowed, keep=keep)
        return [values[value] for value in keep]


def repaired_draw(task: Task, variant: str, seed: int) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Signed inputs of a variant, and the weights and statistics that go with them."""
    args = signed_arguments(task.variant(variant).draw(seed), seed)
    return tensor_leaves(args), repaired_state(task.reference, args, seed)


def ancestors(exported: Exported, values: Sequence[str]) -> list[Json]:
    """The nodes that `values` need, in order."""
    wanted, kept = set(values), []
    for node in reversed(exported.graph["nodes"]):
        if node["id"] in wanted:
            wanted.update(operands(node))
            kept.append(node)
    return kept[::-1]


def unaliased(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[Tensor]:
    """`outputs`, with copies of those that share memory with an input or with an earlier output."""
    taken = {tensor.untyped_storage().data_ptr() for tensor in inputs}
    fresh = []
    for output in outputs:
        address = output.untyped_storage().data_ptr()
        fresh.append(output.clone() if address in taken else output)
        taken.add(address)
    return fresh


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
