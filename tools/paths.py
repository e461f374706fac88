"""Where stitch keeps files outside the project: cache, state and runtime folders, private to the user."""

import os
import stat
import tempfile
import warnings
from pathlib import Path

import platformdirs

from stitch_tui.tools.errors import EnvironmentFault

_APP = "stitch"
SHARED = Path("/tmp")


def cache_dir(*parts: str) -> Path:
    """A folder below the user's cache (``XDG_CACHE_HOME``): builds, indexes; safe to delete at any time."""
    return _private(Path(platformdirs.user_cache_dir(_APP)).resolve(), *parts)


def state_dir(*parts: str) -> Path:
    """A folder below the user's state (``XDG_STATE_HOME``): trust records, logs, self-test results."""
    return _private(Path(platformdirs.user_state_dir(_APP)).resolve(), *parts)


def runtime_dir(*parts: str) -> Path:
    """A folder below the user's runtime directory (``XDG_RUNTIME_DIR``): sockets and locks."""
    with warnings.catch_warnings():  # platformdirs warns where there is no XDG_RUNTIME_DIR; /tmp will do
        warnings.simplefilter("ignore")
        base = Path(platformdirs.user_runtime_dir(_APP))
    return _private(base, *parts)


def shared_dir(*parts: str) -> Path:
    """A folder that all of the user's processes agree on, whatever their environment: leases of GPUs."""
    return _private(SHARED / f"{_APP}-{os.geteuid()}", *parts)


def temporary_dir() -> Path:
    """The user's folder for what lasts as long as a process (below ``TMPDIR``)."""
    return _private(Path(tempfile.gettempdir()) / f"{_APP}-scratch-{os.geteuid()}")


def _private(base: Path, *parts: str) -> Path:
    """Create `base` with mode 0700, then the folders below it.

    Raises:
        EnvironmentFault: it cannot be created, or it belongs to somebody else.
    """
    folder = base.joinpath(*parts)
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        _claim(base)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFault(
            "cannot create a folder of stitch's",
            where=str(folder),
            why=error.strerror or str(error),
            advice="free space or set XDG_CACHE_HOME, XDG_STATE_HOME or XDG_RUNTIME_DIR",
        ) from error
    return folder


def _claim(base: Path) -> None:
    """The runtime folder may be one below /tmp, where somebody else may have made it first."""
    info = base.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
        raise EnvironmentFault(
            "a folder of stitch's is not a directory of yours",
            where=str(base),
            advice="remove it, or set XDG_CACHE_HOME, XDG_STATE_HOME or XDG_RUNTIME_DIR",
        )
    if stat.S_IMODE(info.st_mode) & 0o077:
        base.chmod(0o700)
