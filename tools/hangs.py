"""Candidates that did not end: remembered on disk, so that none is run a second time on this machine."""

import json
import time
from pathlib import Path

from stitch_tui.tools.atomic_write import replace_file
from stitch_tui.tools.paths import state_dir

KEPT = 1000
"""Hangs that are remembered; the oldest are forgotten."""


class Hangs:
    """What hung, by a key of source and launch geometry.

    Args:
        folder: one small file for each; None: the user's state folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = state_dir("hangs") if folder is None else folder

    def recall(self, key: str, deadline_s: float) -> str:
        """A sentence on the hang of that key; empty when it is not known to take longer than `deadline_s`."""
        path = self._path(key)
        try:
            note = json.loads(path.read_text())
            if float(note["deadline_s"]) < deadline_s:
                return ""  # it may only be slow: the new limit is a longer one
            day = time.strftime("%Y-%m-%d", time.gmtime(float(note["since"])))
            what = f"this source did not end within {note['deadline_s']:g} s on {day} and is not run again"
            return f"{what}; it hung {note['where']}; to run it all the same, remove {path}"
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def remember(self, key: str, where: str, deadline_s: float) -> None:
        """Write a hang down."""
        note = {"since": time.time(), "where": where, "deadline_s": deadline_s}
        replace_file(self._path(key), json.dumps(note).encode())
        for path in sorted(self._folder.glob("*.json"), key=_age)[:-KEPT]:
            path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
