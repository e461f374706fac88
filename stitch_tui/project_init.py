"""What ``stitch init`` writes: stitch.toml, and an adapter where the model's names are not the expected ones.

A reference module has ``Model`` (or the class named after the colon), ``get_inputs()`` and
``get_init_inputs()``.  Names are read from the syntax tree: nothing of the user's runs here.
"""

import ast
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.config_edit import write_project_file
from stitch_tui.files import project_config_file, write_atomically
from stitch_tui.tools.errors import UsageError

ADAPTER = "stitch_reference.py"
ENTRIES = ("get_inputs", "get_init_inputs")

_ADAPTER_TEXT = '''\
"""The names that stitch looks for, for {module}.py; written by `stitch init`."""

{imports}


def get_init_inputs() -> list[object]:
    """Arguments of the model's constructor."""
    return []
'''


@dataclass(frozen=True)
class Place:
    """A name in a Python file, as ``file.py:Name``."""

    file: Path
    name: str

    @property
    def shown(self) -> str:
        return f"{self.file}:{self.name}"


def initialise(project: Path, reference: str, inputs: str) -> list[Path]:
    """Write the project's files and return them.

    Args:
        reference: file.py, file.py:Class or pkg.mod:Class.
        inputs: ``file.py:function`` that makes the model's inputs, or empty: the reference has get_inputs.

    Raises:
        UsageError: a file or name is not there, or stitch would overwrite something.
    """
    config = project_config_file(project)
    if config.exists() or config.is_symlink():
        raise UsageError("is there already", where=str(config), advice="change it with `stitch config set`")
    written = []
    if reference.split(":")[0].endswith(".py"):
        reference, adapter = _checked(project, reference, inputs)
        written += [adapter] if adapter else []
    elif inputs:
        raise UsageError("--inputs needs a reference that is a file", where=reference)
    write_project_file(config, {"reference": {"path": reference}})
    return [*written, config]


def place(project: Path, text: str, default: str, option: str) -> Place:
    """The file and name that ``file.py:name`` stands for.

    Raises:
        UsageError: no such file, or not a name.
    """
    file, _, name = text.partition(":")
    if not (project / file).is_file():
        raise UsageError(
            "no such file", where=file or option, advice="REF is file.py, file.py:Class or pkg.mod:Class"
        )
    if name and not name.isidentifier():
        raise UsageError("not a Python name", where=text)
    return Place(Path(file), name or default)


def names_in(file: Path) -> set[str]:
    """Names that a module binds at its top level.

    Raises:
        UsageError: the file is not Python.
    """
    try:
        tree = ast.parse(file.read_bytes(), filename=str(file))
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise UsageError(
            "not Python", where=f"{file}{line}", why=getattr(error, "msg", str(error))
        ) from error
    return {name for statement in _statements(tree.body) for name in _bound(statement)}


def _checked(project: Path, reference: str, inputs: str) -> tuple[str, Path | None]:
    """The reference to write down, and the adapter that was needed for it."""
    model = place(project, reference, "Model", "REF")
    names = names_in(project / model.file)
    _require(model, names)
    if not inputs:
        missing = [name for name in ENTRIES if name not in names]
        if missing:
            raise UsageError(
                f"no {' and no '.join(missing)}",
                where=str(model.file),
                advice="add them, or name your function: --inputs file.py:function",
            )
        return reference, None
    maker = place(project, inputs, "get_inputs", "--inputs")
    _require(maker, names_in(project / maker.file))
    adapter = _write_adapter(project, model, maker)
    return str(adapter.relative_to(project)), adapter


def _require(wanted: Place, names: set[str]) -> None:
    if wanted.name not in names:
        raise UsageError(
            f"no {wanted.name} at the top level", where=str(wanted.file), advice="name it after a colon"
        )


def _write_adapter(project: Path, model: Place, maker: Place) -> Path:
    if model.file.parent != maker.file.parent:
        raise UsageError(
            "the model and its inputs are in different folders", where=f"{model.shown}, {maker.shown}",
            advice=f"write {ADAPTER} by hand with Model, get_inputs and get_init_inputs",
        )  # fmt: skip
    adapter = project / model.file.parent / ADAPTER
    if adapter.exists():
        raise UsageError("is there already", where=str(adapter), advice="remove it, or give it as REF")
    lines = [_import(model, "Model"), _import(maker, "get_inputs")]
    write_atomically(adapter, _ADAPTER_TEXT.format(module=model.file.stem, imports="\n".join(lines)))
    return adapter


def _import(source: Place, name: str) -> str:
    if not source.file.stem.isidentifier():
        raise UsageError("a file whose name cannot be imported", where=str(source.file), advice="rename it")
    return f"from {source.file.stem} import {source.name} as {name}"


def _statements(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements at the top level, those inside if and try included."""
    found: list[ast.stmt] = []
    for statement in body:
        found.append(statement)
        if isinstance(statement, ast.If | ast.Try):
            inner = [*statement.body, *statement.orelse, *getattr(statement, "finalbody", [])]
            for handler in getattr(statement, "handlers", []):
                inner += handler.body
            found += _statements(inner)
    return found


def _bound(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.split(".")[0] for alias in statement.names]
    return [n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
