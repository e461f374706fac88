"""Names of sessions, and the `.stitch/` folder that hides itself from git."""

import errno
import os
import re
import secrets
import shutil
from collections.abc import Container, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

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
        with _writing(folder, "cannot use the .stitch folder"):
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
    with _writing(folder, "cannot make the session's folder"):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def replace_file(path: Path, data: bytes) -> None:
    """Write a file so that it is never seen half written; its folder is made when absent.

    Raises:
        EnvironmentFault: it cannot be written.
    """
    temporary = path.with_name(f".stitch-{secrets.token_hex(8)}")
    with _writing(path, "cannot write a file"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as out:
                out.write(data)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextmanager
def _writing(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EnvironmentFault(
            what,
            where=str(path),
            why=error.strerror or str(error),
            advice="move away what is there, make the project folder writable, or free some space",
        ) from error
