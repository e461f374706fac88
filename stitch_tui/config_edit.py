"""Changes to configuration files: one setting, a new project file, acceptance of a project file."""

from pathlib import Path
from typing import Any

import tomli_w

from stitch_tui import trust
from stitch_tui.config import validated
from stitch_tui.config_fields import catalogue, value_from_text
from stitch_tui.config_layers import Layer, file_values, known_setting, parse, read
from stitch_tui.files import write_atomically
from stitch_tui.toml_text import set_value
from stitch_tui.tools.errors import UsageError

SECRET_HEADERS = ("authorization", "cookie", "api-key", "apikey", "token", "secret")


def set_setting(path: Path, layer: Layer, name: str, text: str) -> Any:
    """Set one setting in the file at `path` and return its value; a file accepted before stays accepted.

    Raises:
        UsageError: the name, the value or the file is wrong; nothing is written then.
        EnvironmentFault: the file cannot be written.
    """
    key = tuple(name.split("."))
    setting = known_setting(key, "config set")
    if setting.is_mapping and any(word in key[-1].lower() for word in SECRET_HEADERS):
        raise UsageError(
            f"{name} would put a secret into a file",
            advice="name the variable that holds it: api_key_env",
        )
    value = value_from_text(setting, text) if key in catalogue() else text
    before = read(path)
    old, _ = parse(path, before)
    new = set_value(old, key, value)
    validated(file_values(path, layer, new.encode()))
    accepted = not before or trust.is_trusted(path, before)
    write_atomically(path, new)
    if layer is Layer.PROJECT and accepted:
        trust.accept(path, new.encode())
    return value


def write_project_file(path: Path, data: dict[str, Any]) -> None:
    """Write a new project file, accepted at once since its owner asked for it.

    Raises:
        UsageError: there is one already.
        EnvironmentFault: it cannot be written.
    """
    if path.exists() or path.is_symlink():
        raise UsageError("is there already", where=str(path), advice="change it with `stitch config set`")
    text = tomli_w.dumps(data)
    write_atomically(path, text)
    trust.accept(path, text.encode())


def accept_project_file(path: Path) -> dict[str, str]:
    """Accept the project file as it is now; what it sets, by name, with its line.

    Raises:
        UsageError: there is none, or it is not valid.
    """
    content = read(path)
    if not content:
        raise UsageError("no project file to trust", where=str(path), advice="`stitch init` writes one")
    values = file_values(path, Layer.PROJECT, content)
    validated(values)
    trust.accept(path, content)
    return {".".join(key): f"{value.value!r} ({value.where})" for key, value in values.items()}
