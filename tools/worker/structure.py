"""What a bundle must know of the reference beside its graph: nesting of arguments and results, constants.

The JSON of ``tools/bundle/contents.Structure``: ``"tensor"``, ``{"tuple": [...]}``, ``{"list": [...]}``,
``{"dict": {...}}``, ``{"value": x}``.
"""

import contextlib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .encoding import Unencodable, dtype_name
from .faults import Fault
from .session import Emit, Json, Session


def layout(session: Session, params: Json, emit: Emit) -> Json:
    """The judge's method: ``inputs``, ``outputs`` and ``constants`` of a bundle's program.

    Raises:
        Fault: arguments or results of a kind that a bundle cannot write down.
    """
    reference, exported, args = session.task.reference, session.task.full.exported, session.task.first_args
    targets = {source["id"]: source["target"] for source in exported.graph["sources"]}
    constants = {targets[name]: value for name, value in exported.constants.items() if name in targets}
    results = reference.dry_forward(args, torch.Tensor.clone, contextlib.nullcontext())
    try:
        return {
            "inputs": arguments_of(reference.module, args),
            "outputs": structure_of(results),
            "constants": constants_of(reference.module, constants),
        }
    except Unencodable as error:
        raise Fault("reference", "no bundle can be written for the reference", why=f"{error}") from error


def structure_of(value: Any) -> Any:
    """How tensors are nested in an argument or a result.

    Raises:
        Unencodable: a container or a value that a bundle cannot write down.
    """
    if isinstance(value, torch.Tensor):
        return "tensor"
    if value is None or type(value) in (bool, int, float, str):
        return {"value": value}
    if type(value) in (list, tuple):
        return {type(value).__name__: [structure_of(item) for item in value]}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"dict": {key: structure_of(item) for key, item in value.items()}}
    raise Unencodable(f"a {type(value).__name__} among its arguments or results")


def arguments_of(module: torch.nn.Module, args: Sequence[Any]) -> Json:
    """The structure of each of forward's positional arguments, by name.

    Raises:
        Unencodable: as `structure_of`.
    """
    parameters = list(inspect.signature(module.forward).parameters.values())
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names += [f"argument_{index}" for index in range(len(names), len(args))]
    return {name: structure_of(value) for name, value in zip(names, args, strict=False)}


def constants_of(module: torch.nn.Module, constants: Mapping[str, torch.Tensor]) -> Json:
    """Values of the constants that forward's code holds, by target; attributes of the module are left out."""
    return {
        target: {"values": value.tolist(), "dtype": dtype_name(value.dtype)}
        for target, value in constants.items()
        if not isinstance(_attribute(module, target), torch.Tensor)
    }


def _attribute(module: torch.nn.Module, path: str) -> Any:
    value: Any = module
    for part in path.split("."):
        value = getattr(value, part, None)
    return value
