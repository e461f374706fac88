"""Work of one operator: floating-point operations and the bytes that must move, from shapes alone."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

Shape = Sequence[int]

_VIEWS = {"getitem", "aten.reshape.default", "aten.lift_fresh_copy.default"}


def is_view(op: str, function: Any) -> bool:
    """Does the operator return a window of its operand, so that it costs nothing?"""
    if op in _VIEWS:
        return True
    schema = getattr(function, "_schema", None)
    return schema is not None and any(r.alias_info and not r.alias_info.is_write for r in schema.returns)


def flops(op: str, args: Sequence[Any], results: Sequence[torch.Tensor]) -> float:
    """Operations of one call: 2 per multiply-add where a formula is known, else 1 per element touched.

    Args:
        args: the operands as (fake) tensors, lists and scalars.
    """
    name = op.split(".")[1] if "." in op else op
    if name in _FORMULAS:
        return float(_FORMULAS[name](args, results))
    touched = [tensor.numel() for tensor in (*tensors_in(args), *results)]
    return float(max(touched, default=0))


def bytes_moved(operands: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> float:
    """Bytes of all operands and results, each once; a broadcast (stride 0) operand only its storage."""
    return float(sum(_stored(tensor) * tensor.element_size() for tensor in (*operands, *results)))


def tensors_in(value: Any) -> list[torch.Tensor]:
    """All tensors in nested lists."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def _stored(tensor: torch.Tensor) -> int:
    extents = zip(tensor.shape, tensor.stride(), strict=True)
    return math.prod(extent for extent, stride in extents if stride != 0 or extent == 0)


def _contraction(position: int, axis: int) -> Callable[[Sequence[Any], Sequence[torch.Tensor]], int]:
    """2 * results * the extent that operand `position` loses along `axis`."""
    return lambda args, results: 2 * results[0].numel() * args[position].shape[axis]


def _convolution(args: Sequence[Any], results: Sequence[torch.Tensor]) -> int:
    weight = args[1].shape
    transposed = len(args) > 6 and args[6] is True
    moving = args[0] if transposed else results[0]
    return int(2 * moving.numel() * math.prod(weight[1:]))


def _transposed(args: Sequence[Any], results: Sequence[torch.Tensor]) -> int:
    return int(2 * args[0].numel() * math.prod(args[1].shape[1:]))


def _attention(args: Sequence[Any], results: Sequence[torch.Tensor]) -> int:
    query, key, value = (tensor.shape for tensor in args[:3])
    return int(2 * math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1]))


def _recurrent(args: Sequence[Any], results: Sequence[torch.Tensor]) -> int:
    matrices = sum(tensor.numel() for tensor in tensors_in(args) if tensor.dim() == 2)
    steps = math.prod(args[0].shape[:-1])
    return int(2 * steps * matrices)


_FORMULAS: dict[str, Callable[[Sequence[Any], Sequence[torch.Tensor]], int]] = {
    "mm": _contraction(0, -1),
    "bmm": _contraction(0, -1),
    "mv": _contraction(0, -1),
    "dot": lambda args, results: 2 * int(args[0].numel()),
    "matmul": _contraction(0, -1),
    "linear": _contraction(0, -1),
    "addmm": _contraction(1, -1),
    "baddbmm": _contraction(1, -1),
    "addmv": _contraction(1, -1),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), _convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _transposed),
    "scaled_dot_product_attention": _attention,
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), _recurrent),
}
