"""A ``ModelNew`` made from the candidate's file, watched from its first line on."""

import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from .abi import IMPORTS
from .audit import Audit
from .encoding import DTYPES
from .module_faults import Wrong, raised
from .tampering import Untouched


class Candidate:
    """A candidate's module, and what it has changed or reached for.

    Args:
        path: its file.
        described: the reference's constructor arguments, flags, dtype and file.
        tell: given at once what the candidate reaches for.

    Raises:
        Wrong: it cannot be made, or is not what it should be.
    """

    def __init__(
        self, path: Path, described: Mapping[str, Any], device: torch.device, tell: Callable[[str], object]
    ) -> None:
        flags = described["flags"]
        torch.set_float32_matmul_precision(flags["matmul_precision"])
        torch.backends.cudnn.allow_tf32 = flags["cudnn_allow_tf32"]
        self._untouched = Untouched()
        imports = [folder for folder in os.environ.get(IMPORTS, "").split(os.pathsep) if folder]
        scratch = [Path.cwd(), Path(tempfile.gettempdir()), Path(os.environ.get("XDG_CACHE_HOME", ""))]
        folders = [path.parent, *scratch, *_hosts(), *map(Path, imports)]
        reference = Path(described["reference"]).resolve()
        self._audit = Audit(folders, _forbidden(path.resolve(), reference), tell)
        sys.path[:0] = [str(path.parent), *imports]
        self.model = _constructed(path, described["init"])
        self.model.to(device=device, dtype=DTYPES[described["dtype"]])
        self.model.train(flags["mode"] == "train")
        self.model.requires_grad_(False)

    def inspect(self, when: str) -> None:
        """Raise for what the candidate changed or reached for that is not its own."""
        if self._audit.seen:
            raise Wrong("hack_suspected", f"{self._audit.seen[0]}, {when}")
        if changed := self._untouched.changes():
            raise Wrong("hack_suspected", f"{changed}, {when}")


def _constructed(path: Path, init: Any) -> nn.Module:
    spec = importlib.util.spec_from_file_location("stitch_candidate", path)
    if spec is None or spec.loader is None:
        raise Wrong("launch_error", f"{path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["stitch_candidate"] = module
    try:
        spec.loader.exec_module(module)
        model = module.ModelNew(**init) if isinstance(init, dict) else module.ModelNew(*init)
    except BaseException as error:
        raise raised(error, "constructing ModelNew", path) from error
    if not isinstance(model, nn.Module):
        raise Wrong("launch_error", "ModelNew is not an nn.Module")
    return model


def hidden() -> list[ModuleType]:
    """The runner's own modules, which no import finds from now on."""
    names = [name for name in sys.modules if name.partition(".")[0] in ("stitch_worker", "__main__")]
    modules = [sys.modules.pop(name) for name in names]
    sys.modules["__main__"] = ModuleType("__main__")
    return modules


def _forbidden(candidate: Path, reference: Path) -> Path | None:
    """The reference's file, unless the candidate is in it, or is a bundle that takes weights from it."""
    bundled = candidate.parent / "reference.py" if candidate.name == "model_new.py" else candidate
    return None if reference in (candidate, bundled) else reference


def _hosts() -> list[Path]:
    """Folders of what the judge gave a bundle to run its kernels with."""
    return [Path(os.environ[name]).parent for name in ("STITCH_HOST", "STITCH_KERNELS") if name in os.environ]
