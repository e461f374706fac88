"""Where the configuration files are, and how a file is replaced in one step."""

from pathlib import Path

import platformdirs

from stitch_tui.tools.atomic_write import replace_file
from stitch_tui.tools.errors import EnvironmentFault

CONFIG_NAME = "stitch.toml"


def user_config_file() -> Path:
    return platformdirs.user_config_path("stitch", appauthor=False) / CONFIG_NAME


def user_theme_folder() -> Path:
    """Where a user's own themes lie."""
    return user_config_file().with_name("themes")


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
        replace_file(path, text.encode())
    except OSError as error:
        raise EnvironmentFault(
            "cannot write", where=str(path), why=error.strerror or str(error), advice="check its permissions"
        ) from error


def remove(path: Path) -> None:
    """Take a file, or a link, away.

    Raises:
        EnvironmentFault: it cannot be, or is a folder.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        why = error.strerror or str(error)
        raise EnvironmentFault(
            "cannot remove", where=str(path), why=why, advice="take it away by hand"
        ) from error
