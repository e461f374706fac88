"""What ``stitch init`` writes: stitch.toml, and an adapter where the model's names are not the expected ones;
and which files of a project could be a reference.

Names are read from the syntax tree: nothing of the user's runs here.
"""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from stitch_tui.config_edit import write_project_file
from stitch_tui.files import project_config_file
from stitch_tui.tools.adapter import write_adapter
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.reference import parse_target

ENTRIES = ("get_inputs", "get_init_inputs")
FILES = 5000
"""Python files of a project that are looked at for a reference."""
_FILE_BYTES = 1 << 20
_NOT_SOURCES = {"node_modules", "site-packages", "build", "dist", "stitched", "__pycache__"}


def initialise(project: Path, reference: str, inputs: str, init: str) -> list[Path]:
    """Write the project's files and return them.

    Args:
        reference: file.py, file.py:Class or pkg.mod:Class.
        inputs: ``file.py:function`` that makes forward's arguments; empty: the reference has get_inputs.
        init: ``file.py:function`` that returns the constructor's arguments, with `inputs` only.

    Raises:
        UsageError: a file or name is not there, or stitch would overwrite something.
    """
    config = project_config_file(project)
    if config.exists() or config.is_symlink():
        raise UsageError("is there already", where=str(config), advice="change it with `stitch config set`")
    target = parse_target(reference)
    written = [config]
    if inputs:
        model = f"{target.path}:{target.name or 'Model'}"
        reference = write_adapter(project, model, inputs, init=init).path
        written.insert(0, project / reference)
    elif init:
        raise UsageError("--init needs --inputs too", where="--init")
    elif target.path.endswith(".py"):
        _require_names(project / target.path, target.path, target.name or "Model")
    write_project_file(config, {"reference": {"path": reference}})
    return written


def _require_names(file: Path, shown: str, model: str) -> None:
    """The names of the convention stand at the top level of the reference's file."""
    if not file.is_file():
        raise UsageError("no such file", where=shown, advice="REF is file.py, file.py:Class or pkg.mod:Class")
    names = _names(file, shown)
    if names is not None and (missing := [name for name in (model, *ENTRIES) if name not in names]):
        raise UsageError(
            f"no {' and no '.join(missing)}",
            where=shown,
            advice="name yours: stitch init file.py:Class --inputs file.py:function",
        )


def _names(file: Path, shown: str) -> set[str] | None:
    """Names that a module binds, also inside if and try; None where a star import hides them."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f"{shown}:{line}" if line else shown
        raise UsageError("not Python", where=where, why=getattr(error, "msg", str(error))) from error
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return None if "*" in names else names


def references(project: Path) -> list[str]:
    """Files of the project that keep the convention (`Model`, `get_inputs`, `get_init_inputs`), by path."""
    return sorted(str(path.relative_to(project)) for path in _sources(project) if _is_reference(path))


def _sources(project: Path) -> Iterator[Path]:
    """Python files, without hidden folders, environments and what was built."""
    left = FILES
    for folder, folders, files in os.walk(project):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _NOT_SOURCES]
        if "pyvenv.cfg" in files:
            folders.clear()
            continue
        for name in files:
            if name.endswith(".py") and left:
                left -= 1
                yield Path(folder, name)


def _is_reference(path: Path) -> bool:
    try:
        small = path.is_file() and path.stat().st_size <= _FILE_BYTES  # a pipe would be waited for
        text = path.read_bytes() if small else b""
        names = _names(path, path.name) if b"def get_inputs" in text else None
    except (OSError, UsageError):
        return False
    return names is not None and {"Model", *ENTRIES} <= names
