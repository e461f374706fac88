"""Values for the sources of a graph: forward's tensors, the module's state, constants."""

from collections.abc import Mapping, Sequence

import torch

from .export import Exported
from .interpreter import Values, cast_floats
from .reference import Reference

Tensor = torch.Tensor


def source_values(
    reference: Reference,
    exported: Exported,
    tensors: Sequence[Tensor],
    state: Mapping[str, Tensor] | None = None,
    widen: bool = False,
) -> Values:
    """A value for every source of a graph.

    Args:
        tensors: forward's tensor arguments.
        state: parameters and buffers by name; missing ones are the module's own.
        widen: cast every floating value to float64.
    """
    named = {**reference.parameters, **reference.buffers, **(state or {})}
    inputs = iter(tensors)
    values: Values = {}
    for source in exported.graph["sources"]:
        if source["kind"] == "input":
            value = next(inputs)
        elif source["kind"] == "constant":
            value = exported.constants[source["id"]]
        else:
            value = named[source["target"]]
        values[source["id"]] = cast_floats(value, torch.float64) if widen else value
    return values
