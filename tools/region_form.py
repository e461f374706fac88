"""What a region computes, without the names of its values: equal forms are one problem for a kernel."""

import json
from typing import Any

from stitch_tui.tools.graph import Graph, Region, TensorSpec, ValueKind


def form_of(graph: Graph, region: Region) -> str:
    """Operators, constants and shapes of a region, its values numbered in the ABI's order.

    A kernel for one region is one for every region of the same form, called with that region's tensors.
    """
    number = {value: f"in{i}" for i, value in enumerate(region.inputs)}
    number |= {node: f"node{i}" for i, node in enumerate(region.nodes)}
    nodes = [graph.node[name] for name in region.nodes]
    form = {
        "inputs": [[_kind(graph, value), _spec(graph.spec(value))] for value in region.inputs],
        "nodes": [
            [n.op, _renamed(list(n.args), number), _renamed(n.kwargs, number), [_spec(s) for s in n.outputs]]
            for n in nodes
        ],
        "outputs": [number[value] for value in region.outputs],
        "numbers": [list(region.ints), list(region.floats)],
    }
    return json.dumps(form, sort_keys=True)


def _kind(graph: Graph, value: str) -> str:
    """An input of the program is an activation to a kernel."""
    kind = graph.kind(value)
    return (ValueKind.NODE if kind is ValueKind.INPUT else kind).value


def _spec(spec: TensorSpec) -> Any:
    return spec.model_dump(mode="json")


def _renamed(argument: Any, number: dict[str, str]) -> Any:
    if isinstance(argument, (list, tuple)):
        return [_renamed(item, number) for item in argument]
    if isinstance(argument, dict):
        if set(argument) == {"ref"}:
            return {"ref": number[argument["ref"]]}
        return {key: _renamed(value, number) for key, value in argument.items()}
    return argument
