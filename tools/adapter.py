"""A thin reference file around a model whose names are not the convention's (``stitch init``)."""

import ast
from pathlib import Path

from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.reference import ReferenceTarget, parse_target

ADAPTER = "stitch_reference.py"


def write_adapter(
    project: Path, model: str, inputs: str, *, init: str = "", path: str = ADAPTER
) -> ReferenceTarget:
    """Write `path` below `project`: ``Model``, ``get_inputs`` and ``get_init_inputs`` under these names.

    Args:
        model: the class, ``model.py:Net``.
        inputs: a function that makes forward's arguments, ``model.py:make_inputs``.
        init: a function that returns the constructor's arguments; empty: it takes none.

    Raises:
        UsageError: a name is missing there, a file cannot be imported by name, or `path` exists with
            other content.
    """
    lines = ['"""Adapter written by `stitch init`: the names that stitch looks for."""', ""]
    lines += [
        f"{_import(project, model)} as Model",
        f"{_import(project, inputs)} as _inputs",
        *([f"{_import(project, init)} as _init"] if init else []),
        "",
        '__all__ = ["Model", "get_init_inputs", "get_inputs"]',
        "",
        "",
        "def get_inputs():",
        "    made = _inputs()",
        "    return list(made) if isinstance(made, (list, tuple)) else [made]",
        "",
        "",
        "def get_init_inputs():",
        f"    return {'_init()' if init else '[]'}",
    ]
    text = "\n".join(lines) + "\n"
    target = project / path
    if target.exists() and not (target.is_file() and target.read_bytes() == text.encode()):
        raise UsageError("the adapter would overwrite a file", where=path, advice="choose another name")
    target.write_text(text, encoding="utf-8")
    return ReferenceTarget(path, "Model")


def _import(project: Path, target: str) -> str:
    """``from package.module import name`` for ``package/module.py:name``."""
    path, name = parse_target(target)
    if not name:
        raise UsageError(f"{target!r} names no class or function", advice="write file.py:name")
    if not path.endswith(".py"):
        return f"from {path} import {name}"
    file = project / path
    if not file.is_file():
        raise UsageError("there is no such file", where=path)
    parts = Path(path).with_suffix("").parts
    if not all(part.isidentifier() for part in parts):
        raise UsageError(
            f"{path} cannot be imported by name", advice="rename it, or write get_inputs() into it"
        )
    if name not in _names(file, path):
        raise UsageError(f"there is no {name}", where=path)
    return f"from {'.'.join(parts)} import {name}"


def _names(file: Path, shown: str) -> set[str]:
    """Names that a module binds at its top level."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError) as error:
        where = f"{shown}:{error.lineno}" if isinstance(error, SyntaxError) else shown
        raise UsageError("it is not valid Python", where=where, why=str(error)) from error
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names
