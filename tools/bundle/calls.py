"""One operator call as a line of Python: the text of a node's arguments."""

import keyword
import re
from collections.abc import Mapping
from typing import Any

from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.graph import DType, Node

TORCH_DTYPE = {
    DType.F32: "torch.float32",
    DType.F64: "torch.float64",
    DType.F16: "torch.float16",
    DType.BF16: "torch.bfloat16",
    DType.I8: "torch.int8",
    DType.U8: "torch.uint8",
    DType.I16: "torch.int16",
    DType.I32: "torch.int32",
    DType.I64: "torch.int64",
    DType.BOOL: "torch.bool",
}
DEVICE = "device"
"""The variable of ``forward`` that stands for every device constant."""

_DROPOUT = {"dropout", "native_dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"}
_RANDOM = {"bernoulli", "rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm"} | {
    "normal", "normal_functional", "uniform", "exponential", "multinomial", "poisson", "rrelu_with_noise",
}  # fmt: skip


def call_text(node: Node, names: Mapping[str, str]) -> str:
    """The Python expression that runs `node` in PyTorch; `names` maps value ids to expressions."""
    if node.op == "getitem":
        return f"{argument_text(node.args[0], names)}[{argument_text(node.args[1], names)}]"
    arguments = [argument_text(argument, names) for argument in node.args]
    unusual = {}
    for name, value in node.kwargs.items():
        if keyword.iskeyword(name):
            unusual[name] = value
        else:
            arguments.append(f"{name}={argument_text(value, names)}")
    if unusual:
        pairs = (f'"{name}": {argument_text(value, names)}' for name, value in unusual.items())
        arguments.append(f"**{{{', '.join(pairs)}}}")
    return f"{operator_text(node.op)}({', '.join(arguments)})"


def operator_text(op: str) -> str:
    """``aten.relu.default`` as an expression; other namespaces are below ``torch.ops``."""
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){2}", op):
        raise UsageError(f"operator {op!r} cannot be called from model_new.py")
    namespace, name, overload = op.split(".")
    root = namespace if namespace == "aten" else f"torch.ops.{namespace}"
    if keyword.iskeyword(overload):
        return f'getattr({root}.{name}, "{overload}")'
    return f"{root}.{name}.{overload}"


def argument_text(argument: Any, names: Mapping[str, str]) -> str:
    """Python source of one JSON argument of a node."""
    if isinstance(argument, Mapping):
        ((kind, value),) = argument.items()
        return _special(kind, value, names)
    if isinstance(argument, (list, tuple)):
        return f"[{', '.join(argument_text(item, names) for item in argument)}]"
    return repr(argument)


def _special(kind: str, value: Any, names: Mapping[str, str]) -> str:
    if kind == "ref":
        return names[value]
    if kind == "dtype":
        return TORCH_DTYPE[DType(value)]
    if kind == "float":
        return f'float("{float(value)}")'
    if kind == "const" and str(value).startswith("torch.device"):
        return DEVICE
    if kind == "const" and re.fullmatch(r"torch\.\w+", str(value)):
        return str(value)
    raise UsageError(f"a node has an argument that model_new.py cannot spell: {kind} {value!r}")


def is_random(node: Node) -> bool:
    """Does the node draw from the generator?"""
    name = node.op.split(".")[1] if "." in node.op else node.op
    if name in _DROPOUT:
        return len(node.args) < 3 or (node.args[1] != 0 and node.args[2] is not False)
    if name == "scaled_dot_product_attention":
        probability = node.args[4] if len(node.args) > 4 else node.kwargs.get("dropout_p", 0.0)
        return bool(probability)
    return name in _RANDOM
