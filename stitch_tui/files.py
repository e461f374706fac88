"""Where the configuration files are, and how a file is replaced in one step."""

import os
import tempfile
from pathlib import Path

import platformdirs

from stitch_tui.tools.errors import EnvironmentFault

CONFIG_NAME = "stitch.toml"


def user_config_file() -> Path:
    return platformdirs.user_config_path("stitch", appauthor=False) / CONFIG_NAME


def project_config_file(project: Path) -> Path:
    return project / CONFIG_NAME


def write_atomically(path: Path, text: str) -> None:
    """Replace `path` by `text` in one step; an existing file keeps its mode, a link its target.

    Raises:
        EnvironmentFault: the folder or the file cannot be written.
    """
    path = path.resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, text)
    except OSError as error:
        raise EnvironmentFault(
            "cannot write", where=str(path), why=error.strerror or str(error), advice="check its permissions"
        ) from error


def _replace(path: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            os.fchmod(file.fileno(), path.stat().st_mode & 0o777 if path.exists() else 0o644 & ~_umask())
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
