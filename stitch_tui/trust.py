"""Which project files the user has accepted: a hash each, in the user's state folder.

A record is a file of its own, so two `stitch trust` at once cannot lose each other's.
"""

import hashlib
from pathlib import Path

from stitch_tui.files import write_atomically
from stitch_tui.tools.paths import state_dir


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def is_trusted(path: Path, content: bytes) -> bool:
    """Whether exactly this `content` of the file at `path` was accepted."""
    record = _record(path)
    return record.is_file() and record.read_text(encoding="utf-8").split("\n")[0] == digest(content)


def accept(path: Path, content: bytes) -> None:
    """Remember this `content` of the file at `path` as accepted."""
    write_atomically(_record(path), f"{digest(content)}\n{path.resolve()}\n")


def _record(path: Path) -> Path:
    return state_dir("trust") / digest(str(path.resolve()).encode("utf-8", "surrogateescape"))
