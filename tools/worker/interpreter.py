"""Run nodes of an exported graph through torch's operators by name, on any values."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import torch

from .encoding import decode

Values = dict[str, Any]


@cache
def operator_of(name: str) -> Any:
    """The operator overload that a node's ``op`` names: ``aten.linear.default``."""
    if name == "getitem":
        return operator.getitem
    namespace, packet, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload)


def run_nodes(
    nodes: Iterable[Mapping[str, Any]],
    values: Values,
    device: torch.device,
    *,
    widen: bool = False,
    narrowed: set[str] | None = None,
    keep: Sequence[str] | None = None,
    before: Callable[[Mapping[str, Any], Values], None] | None = None,
) -> Values:
    """Compute `nodes` in order from `values`, which is extended and returned.

    Args:
        nodes: JSON nodes in topological order.
        values: value id -> tensor, for every value that the nodes read from outside.
        device: device of tensors that nodes create.
        widen: float64 throughout: floating dtype arguments are widened, as the values must be.
        narrowed: receives the operators that have no float64 kernel and ran in float32 instead.
        keep: ids to keep; any other node's value is freed after its last use.  None: keep all.
        before: called with each node and the values so far.
    """
    nodes = list(nodes)
    last_use = {} if keep is None else _last_uses(nodes, set(keep))
    for position, node in enumerate(nodes):
        if before is not None:
            before(node, values)
        values[node["id"]] = run_node(node, values, device, widen=widen, narrowed=narrowed)
        for value in last_use.get(position, ()):
            del values[value]
    return values


def run_node(
    node: Mapping[str, Any],
    values: Mapping[str, Any],
    device: torch.device,
    *,
    widen: bool = False,
    narrowed: set[str] | None = None,
) -> Any:
    """The value of one node, a tensor or a tuple of tensors."""
    function = operator_of(node["op"])
    args = decode(node["args"], values, device, widen)
    kwargs = {name: decode(item, values, device, widen) for name, item in node["kwargs"].items()}
    if not widen:
        return function(*args, **kwargs)
    try:
        return function(*args, **kwargs)
    except RuntimeError as error:
        if "not implemented for" not in str(error) and "Double" not in str(error):
            raise
    if narrowed is not None:
        narrowed.add(node["op"])
    single = {operand: cast_floats(values[operand], torch.float32) for operand in operands(node)}
    return cast_floats(run_node(node, single, device), torch.float64)


def cast_floats(value: Any, dtype: torch.dtype) -> Any:
    """`value` with every floating tensor in it cast to `dtype`; integers and booleans untouched."""
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        return type(value)(cast_floats(item, dtype) for item in value)
    return value


def references(argument: Any) -> Iterable[str]:
    """Ids of the values that a node's JSON argument refers to."""
    if isinstance(argument, Mapping):
        if "ref" in argument:
            yield argument["ref"]
        elif not {"float", "dtype", "const"} & argument.keys():
            for item in argument.values():
                yield from references(item)
    elif isinstance(argument, (list, tuple)):
        for item in argument:
            yield from references(item)


def operands(node: Mapping[str, Any]) -> list[str]:
    """Ids of the values that a node reads, in order, without repeats."""
    return list(dict.fromkeys(references([node["args"], node["kwargs"]])))


def _last_uses(nodes: Sequence[Mapping[str, Any]], keep: set[str]) -> dict[int, list[str]]:
    """Position -> values of `nodes` that no later node reads."""
    last = {node["id"]: position for position, node in enumerate(nodes)}
    for position, node in enumerate(nodes):
        last |= {operand: position for operand in operands(node) if operand in last}
    dead: dict[int, list[str]] = {}
    for value, position in last.items():
        if value not in keep:
            dead.setdefault(position, []).append(value)
    return dead
