"""A region of the graph as one ``torch.fx`` module: what eager mode and ``torch.compile`` are timed on."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx, nn

from .encoding import decode
from .interpreter import operator_of


def region_module(
    nodes: Sequence[Mapping[str, Any]], inputs: Sequence[str], outputs: Sequence[str], device: torch.device
) -> nn.Module:
    """Calls the nodes' operators one after another, without the interpreter's work in between.

    Args:
        nodes: JSON nodes in topological order.
        inputs: value ids of the border, in the order of the module's arguments.
        outputs: value ids of the results, returned as a tuple.
    """
    graph = fx.Graph()
    values: dict[str, Any] = {value: graph.placeholder(f"in_{index}") for index, value in enumerate(inputs)}
    for node in nodes:
        args = tuple(decode(node["args"], values, device))
        kwargs = {name: decode(item, values, device) for name, item in node["kwargs"].items()}
        values[node["id"]] = graph.call_function(operator_of(node["op"]), args, kwargs)
    graph.output(tuple(values[value] for value in outputs))
    return fx.GraphModule(nn.Module(), graph)
