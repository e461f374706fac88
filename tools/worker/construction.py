"""Construct the user's module as its options say: device, seed, constructor's arguments."""

import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .encoding import DTYPES
from .faults import Fault, foreign
from .loading import Loaded


@dataclass(frozen=True)
class Options:
    """How the reference is run; the params of ``open``."""

    project: Path
    path: str
    name: str = ""
    mode: str = "train"
    dtype: str = "f32"
    device: str = "cpu"
    matmul_precision: str = "highest"
    allow_tf32_conv: bool = True
    init_seed: int = 0
    seed: int = 0
    load_seconds: float = 120.0
    forward_seconds: float = 120.0

    @property
    def torch_dtype(self) -> torch.dtype:
        return DTYPES[self.dtype]


def device_of(name: str) -> torch.device:
    """The device ``cpu`` or ``cuda:N``.

    Raises:
        Fault: this interpreter's torch does not see it.
    """
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise Fault(
            "environment",
            f"{sys.executable} sees no device {name}",
            why=f"torch {torch.__version__} finds {torch.cuda.device_count()} CUDA devices",
            advice="install a CUDA build of torch there, or use the emulator",
        )
    return device


def construct(options: Options, loaded: Loaded) -> torch.nn.Module:
    """The user's module, its parameters drawn under ``init_seed``.

    Raises:
        Fault: ``get_init_inputs()`` or the constructor raises.
    """
    init: Any = []
    if loaded.get_init_inputs is not None:
        where = loaded.line_of(loaded.get_init_inputs)
        seed_everything(options.init_seed)
        with foreign("get_init_inputs()", loaded.located, where=where):
            init = loaded.get_init_inputs()
        if not isinstance(init, (list, tuple, dict)):
            raise Fault(
                "reference",
                f"get_init_inputs() returns {describe(init)}, not a list",
                where=where,
                advice=f"return a list of {loaded.class_name}'s arguments",
            )
    seed_everything(options.init_seed)
    what = f"constructing {loaded.class_name}"
    with foreign(what, loaded.located, where=loaded.line_of(loaded.build)):
        module = loaded.build(**init) if isinstance(init, dict) else loaded.build(*init)
    assert isinstance(module, torch.nn.Module)
    return module


def seed_everything(seed: int) -> None:
    """Seed every generator that an input function may use: torch, `random`, NumPy if it is loaded."""
    torch.manual_seed(seed)
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed % 2**32)


def describe(value: Any) -> str:
    """What a value is, with its article."""
    if isinstance(value, torch.Tensor):
        return f"a {str(value.layout).removeprefix('torch.')} {value.dtype} tensor"
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
