"""The whole program as what a candidate is compared with."""

from collections.abc import Sequence

import torch

from .encoding import DTYPES
from .faults import Fault
from .interpreter import cast_floats, run_nodes
from .randomness import is_random
from .reduction import longest_sum
from .slots import Slot, repaired_draw, unaliased
from .sources import source_values
from .task import Task
from .variants import FULL, Variant

Tensor = torch.Tensor


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

    def draw(self, variant: str, seed: int) -> list[Tensor]:
        reference = self.task.reference
        state = (*reference.parameters.values(), *reference.buffers.values())
        return [tensor.clone() for tensor in (*self.task.variant(variant).tensors(seed), *state)]

    def repaired(self, variant: str, seed: int) -> list[Tensor]:
        inputs, state = repaired_draw(self.task, variant, seed)
        names = (*self.task.reference.parameters, *self.task.reference.buffers)
        return [*inputs, *(state[name].clone() for name in names)]

    def evaluate(self, tensors: Sequence[Tensor], precision: str, variant: str = FULL) -> list[Tensor]:
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
