"""Operator arguments, dtypes and tensor specs as JSON, both ways (the encoding of ``tools/graph.Node``)."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

DTYPES = {
    "f32": torch.float32,
    "f64": torch.float64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "bool": torch.bool,
}
"""The candidate ABI's names of torch's dtypes."""

_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_CONSTANTS = {
    str(constant): constant
    for constant in (
        torch.contiguous_format,
        torch.channels_last,
        torch.channels_last_3d,
        torch.preserve_format,
        torch.strided,
    )
}


class Unencodable(ValueError):
    """A value that the graph cannot carry; the message says which."""


def dtype_name(dtype: torch.dtype) -> str:
    """The ABI's name of a dtype.

    Raises:
        Unencodable: the ABI has no such dtype (complex, float8, ...).
    """
    if dtype not in _NAMES:
        raise Unencodable(f"{dtype} values")
    return _NAMES[dtype]


def encode_spec(tensor: torch.Tensor) -> dict[str, Any]:
    """A tensor's shape, dtype and strides (None when contiguous) as ``TensorSpec``."""
    if tensor.layout is not torch.strided:
        raise Unencodable(f"{tensor.layout} tensors")
    if not all(isinstance(extent, int) for extent in tensor.shape):
        raise Unencodable("a shape that depends on values")
    return {
        "shape": [int(extent) for extent in tensor.shape],
        "dtype": dtype_name(tensor.dtype),
        "strides": None if tensor.is_contiguous() else [int(stride) for stride in tensor.stride()],
    }


def encode(argument: Any, reference_to: Callable[[Any], dict[str, str] | None]) -> Any:
    """JSON of one operator argument; `reference_to` maps a graph value to ``{"ref": id}``, else None."""
    if (reference := reference_to(argument)) is not None:
        return reference
    if isinstance(argument, (list, tuple)):
        return [encode(item, reference_to) for item in argument]
    if argument is None or isinstance(argument, (bool, int, str)):
        return argument
    if isinstance(argument, float):
        return argument if math.isfinite(argument) else {"float": str(argument)}
    if isinstance(argument, torch.dtype):
        return {"dtype": _NAMES[argument]} if argument in _NAMES else {"const": str(argument)}
    if isinstance(argument, torch.device):
        return {"const": "torch.device"}
    if str(argument) in _CONSTANTS:
        return {"const": str(argument)}
    raise Unencodable(f"a constant of type {type(argument).__name__}")


def decode(argument: Any, values: Mapping[str, Any], device: torch.device, widen: bool = False) -> Any:
    """The argument that `encode` wrote, references looked up in `values`.

    Args:
        device: stands for every device constant.
        widen: floating dtype constants become float64.
    """
    if isinstance(argument, list):
        return [decode(item, values, device, widen) for item in argument]
    if not isinstance(argument, dict):
        return argument
    ((key, value),) = argument.items()
    if key == "ref":
        return values[value]
    if key == "float":
        return float(value)
    if key == "dtype":
        dtype = DTYPES[value]
        return torch.float64 if widen and dtype.is_floating_point else dtype
    if value == "torch.device":
        return device
    return _CONSTANTS[value] if value in _CONSTANTS else getattr(torch, value.removeprefix("torch."))
