"""Names of sessions, and the `.stitch/` folder that hides itself from git."""

import errno
import re
import shutil
from collections.abc import Container
from datetime import datetime
from pathlib import Path

from stitch_tui.tools.atomic_write import replace_file, writing
from stitch_tui.tools.errors import EnvironmentFault


def session_name(slug: str, now: datetime, taken: Container[str] = ()) -> str:
    """``YYYYMMDD-HHMM-<slug>``; with ``-2``, ``-3`` ... when `taken` holds it already."""
    words = re.sub(r"[^A-Za-z0-9_]+", "-", slug).strip("-").lower()[:40].strip("-")
    name = f"{now:%Y%m%d-%H%M}-{words or 'session'}"
    suffix, number = "", 1
    while name + suffix in taken:
        number += 1
        suffix = f"-{number}"
    return name + suffix


def state_folder(project: Path) -> Path:
    """`.stitch/` of a project, made when absent: mode 0700, ignored by its own `.gitignore`.

    Raises:
        EnvironmentFault: something else has that name, or it cannot be made.
    """
    folder = project / ".stitch"
    made = not folder.exists()
    try:
        with writing(folder, "cannot use the .stitch folder"):
            folder.mkdir(mode=0o700, exist_ok=True)
            if folder.is_symlink():
                raise FileExistsError(errno.EEXIST, "it is a symbolic link")
            folder.chmod(0o700)
            ignore = folder / ".gitignore"
            if not ignore.exists():
                replace_file(ignore, b"*\n")
    except EnvironmentFault:
        if made:
            shutil.rmtree(folder, ignore_errors=True)  # a full disk: leave nothing half made
        raise
    return folder


def work_folder(project: Path, session: str) -> Path:
    """`.stitch/work/<session>/`, made when absent: the session's current files, for human and agents."""
    folder = state_folder(project) / "work" / session
    with writing(folder, "cannot make the session's folder"):
        folder.mkdir(parents=True, exist_ok=True)
    return folder
