"""The longest sum behind one element of a graph's nodes, from their operators and shapes."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .export import OPAQUE

Json = dict[str, Any]
SpecOf = Callable[[str], Json]

_CONTRACTIONS = {"mm": 0, "bmm": 0, "matmul": 0, "linear": 0, "mv": 0, "dot": 0, "addmm": 1, "baddbmm": 1}
"""Operator -> the operand whose last axis is summed over."""
_CONVOLUTIONS = {"convolution", "conv1d", "conv2d", "conv3d"}
_TRANSPOSED = {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}
_REDUCTIONS = {
    "sum": "dim", "mean": "dim", "var": "dim", "std": "dim", "var_mean": "dim", "prod": "dim",
    "softmax": "dim", "_softmax": "dim", "log_softmax": "dim", "_log_softmax": "dim", "logsumexp": "dim",
    "cumsum": "dim", "cumprod": "dim", "linalg_vector_norm": "dim", "norm": "dim",
}  # fmt: skip
_EXACT = {"max", "min", "amax", "amin", "argmax", "argmin", "max_pool2d", "max_pool2d_with_indices", "gather"}
"""Operators with more operands than results that add nothing."""


def longest_sum(nodes: Sequence[Json], spec_of: SpecOf) -> int:
    """Length of the longest sum among `nodes`; 0 when the operators are not known.

    Args:
        spec_of: a value's ``TensorSpec`` as JSON.
    """
    if any(node["op"] == OPAQUE for node in nodes):
        return 0
    return max((_sum_of(node, spec_of) for node in nodes), default=0)


def _sum_of(node: Json, spec_of: SpecOf) -> int:
    name = node["op"].split(".")[1] if "." in node["op"] else node["op"]
    shapes = [_shape(argument, spec_of) for argument in node["args"]]
    if name in _CONTRACTIONS:
        operand = shapes[_CONTRACTIONS[name]]
        return operand[-1] if operand else 1
    if name in _CONVOLUTIONS and shapes[1] is not None:
        return math.prod(shapes[1][1:]) if not _flag(node, 6) else _incoming(shapes[1], _number(node, 8))
    if name in _TRANSPOSED and shapes[1] is not None:
        return _incoming(shapes[1], _number(node, 6))
    if name in _REDUCTIONS and shapes and shapes[0] is not None:
        return _reduced(node, shapes[0], 2 if "norm" in name else 1)
    if name in ("layer_norm", "native_layer_norm", "rms_norm") and shapes[0] is not None:
        return math.prod(shapes[0][len(shapes[0]) - len(node["args"][1]) :])
    if name == "scaled_dot_product_attention" and shapes[0] and shapes[1]:
        return max(shapes[0][-1], shapes[1][-2])
    return 1 if name in _EXACT else _shrinkage(node, [shape for shape in shapes if shape is not None])


def _shrinkage(node: Json, shapes: Sequence[tuple[int, ...]]) -> int:
    """How many elements of the largest operand there are for one of the result: poolings, unknown sums."""
    results = [math.prod(spec["shape"]) for spec in node.get("outputs", ()) if spec]
    largest = max((math.prod(shape) for shape in shapes), default=1)
    return max(1, -(-largest // max(1, max(results, default=1))))


def _incoming(weight: tuple[int, ...], groups: int) -> int:
    return math.prod((weight[0] // max(1, groups), *weight[2:]))


def _reduced(node: Json, shape: tuple[int, ...], position: int) -> int:
    given = node["kwargs"].get("dim", node["args"][position] if len(node["args"]) > position else None)
    if isinstance(given, bool) or given is None or given == []:
        return math.prod(shape)
    dims = given if isinstance(given, list) else [given]
    return math.prod(shape[dim] for dim in dims) if shape else 1


def _shape(argument: Any, spec_of: SpecOf) -> tuple[int, ...] | None:
    if not isinstance(argument, Mapping) or "ref" not in argument:
        return None
    return tuple(spec_of(argument["ref"])["shape"])


def _flag(node: Json, position: int) -> bool:
    return len(node["args"]) > position and node["args"][position] is True


def _number(node: Json, position: int) -> int:
    value = node["args"][position] if len(node["args"]) > position else 1
    return value if isinstance(value, int) else 1
