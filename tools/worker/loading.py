"""Find the user's class and input functions in a file or module, with one clear error for what is missing."""

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from .faults import Fault, Located, foreign

MODULE_NAME = "stitch_reference"
"""What a reference given by file is called in `sys.modules`."""

CLASS_NAMES = ("Model", "ModelNew")
"""Looked for, in this order, when no class is named."""


@dataclass(frozen=True)
class Loaded:
    """The pieces of a reference, imported but not yet called."""

    path: Path
    class_name: str
    build: Callable[..., Any]
    get_inputs: Callable[[], Any]
    get_init_inputs: Callable[[], Any] | None
    get_small_inputs: Callable[[], Any] | None
    source: str
    sha256: str
    located: Located

    @property
    def name(self) -> str:
        """The file as the user would write it."""
        return self.located.relative(str(self.path)) or str(self.path)

    def line_of(self, thing: Any) -> str:
        """``file:line`` where a class or function is defined."""
        try:
            path, line = inspect.getsourcefile(thing), inspect.getsourcelines(thing)[1]
        except (OSError, TypeError):
            return self.name
        return f"{self.located.relative(path or '') or path}:{line}"


def load(target: str, class_name: str, project: Path) -> Loaded:
    """Import a reference.

    Args:
        target: ``file.py`` relative to `project`, or a dotted module.
        class_name: name of the class; empty: ``Model``, else ``ModelNew``.

    Raises:
        Fault: nothing there, not Python, raises on import, or a piece is missing.
    """
    if target.endswith(".py"):
        path, module, located = _import_file(target, project)
    else:
        path, module, located = _import_module(target, project)
    content = path.read_bytes()
    name = located.relative(str(path)) or str(path)
    return Loaded(
        path=path,
        class_name=(found := _class_of(module, class_name, name)),
        build=getattr(module, found),
        get_inputs=_function(module, "get_inputs", name),
        get_init_inputs=getattr(module, "get_init_inputs", None),
        get_small_inputs=getattr(module, "get_small_inputs", None),
        source=content.decode("utf-8", errors="replace"),
        sha256=hashlib.sha256(content).hexdigest(),
        located=located,
    )


def _import_file(target: str, project: Path) -> tuple[Path, ModuleType, Located]:
    path = (project / target).resolve()
    if not path.is_file():
        raise Fault("reference", "there is no such reference file", where=target)
    located = Located(project, path)
    for folder in (project, path.parent):
        _search_first(folder)
    spec = importlib.util.spec_from_file_location(MODULE_NAME, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE_NAME] = module
    with foreign("importing the reference", located, where=target):
        spec.loader.exec_module(module)
    return path, module, located


def _import_module(target: str, project: Path) -> tuple[Path, ModuleType, Located]:
    located = Located(project)
    _search_first(project)
    with foreign("importing the reference", located, where=target):
        module = importlib.import_module(target)
    path = Path(module.__file__ or "")
    if not path.is_file():
        raise Fault("reference", f"{target} is not a Python file", where=target, advice="name a module")
    return path.resolve(), module, Located(project, path.resolve())


def _search_first(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _class_of(module: ModuleType, wanted: str, name: str) -> str:
    for candidate in (wanted,) if wanted else CLASS_NAMES:
        if isinstance(found := getattr(module, candidate, None), type) and issubclass(found, torch.nn.Module):
            return candidate
        if found is not None:
            raise Fault("reference", f"{candidate} is not an nn.Module class", where=name)
    others = [
        key
        for key, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, torch.nn.Module)
        and value.__module__ == module.__name__
    ]
    advice = f"it defines {', '.join(others[:8])}: name one as {name}:{others[0]}" if others else ""
    missing = wanted or CLASS_NAMES[0]
    raise Fault("reference", f"there is no class {missing}", where=name, advice=advice)


def _function(module: ModuleType, wanted: str, name: str) -> Callable[[], Any]:
    found = getattr(module, wanted, None)
    if found is None:
        raise Fault(
            "reference",
            f"there is no function {wanted}()",
            where=name,
            advice="it returns the list of forward's arguments; `stitch init` writes an adapter"
            " when it has another name",
        )
    if not callable(found):
        raise Fault("reference", f"{wanted} is not a function", where=name)
    function: Callable[[], Any] = found
    return function
