"""A reference made ready for judging: its shape variants, each with a graph, opaque where there is none."""

import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import torch

from .encoding import encode_spec
from .export import OPAQUE, Exported, Inexportable, export
from .faults import Fault
from .interpreter import run_nodes
from .randomness import is_random
from .reference import Outcome, Reference, seed_everything
from .sources import source_values
from .template import Template, tensor_leaves
from .variants import FULL, Candidate, Variant, found, given, specs_of

LONGEST_FORWARD_S = 20.0
"""A slower forward pass is not repeated to confirm what is known."""

FEW = 0.01
"""Share of integer results (places of maxima) that rounding may turn."""

VARIANT_SECONDS = 30.0
"""The search for small shapes ends after this long, with what it has found."""


class Task:
    """What the methods of the judge work on."""

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        self.unexportable: Inexportable | None = None
        self.variant_notes: list[str] = []
        seed = reference.options.seed
        self.first_args = reference.draw_inputs(seed)
        started = time.monotonic()
        self.first = self.run(self.first_args)
        self.first_seconds = time.monotonic() - started
        if reference.writes_inputs:
            self.first_args = reference.draw_inputs(seed)
        self.template = Template(self.first_args)

    @cached_property
    def mutated(self) -> list[str]:
        """Names of the buffers that forward changes, in the module's order."""
        graph = self.full.exported.graph
        changed = {source["target"] for source in graph["sources"] if source["id"] in graph["mutations"]}
        return [name for name in self.first.buffers if name in changed]

    def run(self, args: Sequence[Any], seed: int | None = None) -> Outcome:
        """One forward pass under the reference's flags, its randomness seeded (default: as at `open`)."""
        self.reference.set_flags()
        seed_everything(self.reference.options.seed if seed is None else seed)
        return self.reference.forward(args)

    @cached_property
    def full(self) -> Variant:
        """The variant of ``get_inputs()``."""
        args, draw = self.first_args, self.reference.draw_inputs
        return Variant(FULL, draw, self.template, specs_of(args), self._graph_of(args))

    @cached_property
    def variants(self) -> dict[str, Variant]:
        """All shape variants by name, ``full`` first."""
        full = self.full
        known = {FULL: full}
        deadline = time.monotonic() + VARIANT_SECONDS
        own = self.reference.loaded.get_small_inputs is not None
        for candidate in given(self.reference, self.template) if own else self.proposed(deadline):
            if (variant := self._confirmed(candidate)) is not None:
                known[variant.name] = variant
            if time.monotonic() > deadline:
                break
        if time.monotonic() > deadline:
            self.variant_notes.append("the search for small shapes ran out of time")
        if len(known) == 1:
            self.variant_notes.append("no extent of the inputs can change: only full size is checked")
        return known

    def proposed(self, deadline: float) -> Iterator[Candidate]:
        """Small shapes that the search finds, before any of them is run and exported."""
        ranks = [output.dim() for output in self.first.outputs]
        return found(self.reference, self.template, self.first_args, ranks, deadline)

    def variant(self, name: str) -> Variant:
        """A variant by name.

        Raises:
            Fault: there is none of that name.
        """
        if name == FULL:
            return self.full
        if name not in self.variants:
            raise Fault("usage", f"the reference has no shape variant {name}")
        return self.variants[name]

    def _confirmed(self, candidate: Candidate) -> Variant | None:
        """The variant, if the reference really runs there and through the same nodes as at full size."""
        try:
            args = candidate.draw(self.reference.options.seed)
            self.run(args)
        except Fault as fault:
            self.variant_notes.append(f"{candidate.name} dropped: {fault.what}: {fault.why}")
            return None
        exported = self._graph_of(args)
        if exported.skeleton != self.full.exported.skeleton:
            self.variant_notes.append(f"{candidate.name} dropped: other operators than at full size")
            return None
        return Variant(candidate.name, candidate.draw, Template(args), specs_of(args), exported)

    def _graph_of(self, args: Sequence[Any]) -> Exported:
        """The graph on `args`; an opaque one once the reference has turned out not to be exportable."""
        if self.unexportable is None:
            try:
                exported = export(self.reference, args)
                if args is self.first_args:
                    self._require_faithful(exported)
                return exported
            except Inexportable as error:
                if "full" in vars(self):
                    raise Fault("reference", "a small shape cannot be exported", why=error.why) from error
                self.unexportable = error
        return self._opaque(args)

    def _require_faithful(self, exported: Exported) -> None:
        """The graph must compute what the module computed; a fast and deterministic one is held to it.

        Raises:
            Inexportable: it does not: forward does something that tracing did not see.
        """
        nodes, reference = exported.graph["nodes"], self.reference
        if self.first_seconds > LONGEST_FORWARD_S or any(is_random(node) for node in nodes):
            return
        values = source_values(reference, exported, tensor_leaves(self.first_args))
        with torch.no_grad():
            run_nodes(nodes, values, reference.device, keep=exported.graph["outputs"])
        for index, (name, output) in enumerate(
            zip(exported.graph["outputs"], self.first.outputs, strict=True)
        ):
            if not _close(values[name], output):
                raise Inexportable(f"the exported graph computes something else in output {index}")

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
            "bytes_moved": float(sum(t.nbytes for t in (*leaves, *results))),
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


def _close(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal but for rounding: kernels that the module's own call may choose differ in their order."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not one.is_floating_point():
        return bool((one != other).float().mean() <= FEW) if one.numel() else True
    scale = other.double().nan_to_num(0, 0, 0).square().mean().sqrt()
    return torch.allclose(one.double(), other.double(), rtol=0.02, atol=0.02 * float(scale), equal_nan=True)


def _identifier(kind: str, name: str) -> str:
    return name if kind == "input" else f"{kind[0]}_{name.replace('.', '_')}"
