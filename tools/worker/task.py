"""A reference made ready for judging: its graph, or the opaque node that stands for it, and its shape variants."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .encoding import encode_spec
from .export import Exported, Inexportable, Json, export
from .reference import Outcome, Reference, seed_everything

OPAQUE = "opaque"
"""``op`` of the one node that stands for a reference that cannot be exported."""


class Template:
    """Forward's arguments with the tensors taken out."""

    def __init__(self, args: Sequence[Any]) -> None:
        leaves, self.structure = pytree.tree_flatten(list(args))
        self.tensor = [isinstance(leaf, torch.Tensor) for leaf in leaves]
        self.leaves = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]

    def fill(self, tensors: Sequence[torch.Tensor]) -> list[Any]:
        """The arguments with `tensors` as their tensor leaves, in order."""
        given = iter(tensors)
        leaves = [
            next(given) if tensor else leaf for tensor, leaf in zip(self.tensor, self.leaves, strict=True)
        ]
        args: list[Any] = pytree.tree_unflatten(leaves, self.structure)
        return args


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


class Task:
    """What the methods of the judge work on."""

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        self.unexportable: Inexportable | None = None
        self.first_args = reference.draw_inputs(reference.options.seed)
        self.first = self.run(self.first_args)
        if reference.writes_inputs:
            self.first_args = reference.draw_inputs(reference.options.seed)

    @property
    def mutated(self) -> list[str]:
        """Names of the buffers that forward changes, in the module's order."""
        graph = self.full.exported.graph
        changed = {source["target"] for source in graph["sources"] if source["id"] in graph["mutations"]}
        return [name for name in self.first.buffers if name in changed]

    def run(self, args: Sequence[Any]) -> Outcome:
        """One forward pass under the reference's flags, its randomness seeded."""
        self.reference.set_flags()
        seed_everything(self.reference.options.seed)
        return self.reference.forward(args)

    @cached_property
    def full(self) -> Variant:
        """The variant of ``get_inputs()``."""
        args = self.first_args
        return Variant(
            name="full",
            draw=self.reference.draw_inputs,
            template=Template(args),
            inputs=[encode_spec(leaf) for leaf in tensor_leaves(args)],
            exported=self.graph_of(args),
        )

    def graph_of(self, args: Sequence[Any]) -> Exported:
        """The graph on `args`; an opaque one once the reference has turned out not to be exportable."""
        if self.unexportable is None:
            try:
                return export(self.reference, args)
            except Inexportable as error:
                self.unexportable = error
        return self._opaque(args)

    def variant(self, name: str) -> Variant:
        """A variant by name.

        Raises:
            KeyError: there is none of that name.
        """
        if name != "full":
            raise KeyError(name)
        return self.full

    def _opaque(self, args: Sequence[Any]) -> Exported:
        """One node that reads everything and whose results are the outputs and changed buffers."""
        reference = self.reference
        outcome = self.first if args is self.first_args else self.run(args)
        leaves = tensor_leaves(args)
        named = [
            ("input", name, leaf) for name, leaf in zip(reference.argument_names(args), leaves, strict=True)
        ]
        named += [("parameter", name, value) for name, value in reference.parameters.items()]
        named += [("buffer", name, value) for name, value in reference.buffers.items()]
        sources = [
            {"id": _identifier(kind, name), "kind": kind, "target": name, "spec": encode_spec(value)}
            for kind, name, value in named
        ]
        results = [*outcome.outputs, *(outcome.buffers[name] for name in outcome.mutated)]
        specs = [encode_spec(result) for result in results]
        where = reference.loaded.line_of(type(reference.module).forward)
        body = {
            "id": OPAQUE,
            "op": OPAQUE,
            "args": [{"ref": source["id"]} for source in sources],
            "kwargs": {},
            "outputs": specs,
            "source": where,
            "bytes_moved": float(sum(t.numel() * t.element_size() for t in (*leaves, *results))),
        }
        picks = [
            {
                "id": f"result_{index}",
                "op": "getitem",
                "args": [{"ref": OPAQUE}, index],
                "kwargs": {},
                "outputs": [spec],
                "source": where,
            }
            for index, spec in enumerate(specs)
        ]
        names = [pick["id"] for pick in picks]
        count = len(outcome.outputs)
        return Exported(
            {
                "sources": sources,
                "nodes": [body, *picks],
                "outputs": names[:count],
                "mutations": {
                    _identifier("buffer", buffer): name
                    for buffer, name in zip(outcome.mutated, names[count:], strict=True)
                },
            },
            {},
        )


def tensor_leaves(args: Sequence[Any]) -> list[torch.Tensor]:
    """The tensors in nested arguments, in order."""
    return [leaf for leaf in pytree.tree_leaves(list(args)) if isinstance(leaf, torch.Tensor)]


def _identifier(kind: str, name: str) -> str:
    return name if kind == "input" else f"{kind[0]}_{name.replace('.', '_')}"
