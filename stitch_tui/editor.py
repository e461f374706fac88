"""A text in the person's own editor; the terminal is theirs meanwhile."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported


def command() -> list[str]:
    """``$VISUAL``, ``$EDITOR``, else what there is."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    return shlex.split(chosen)


def edited(app: App[Any], text: str, name: str) -> str | None:
    """`text` as the editor left it; None when it could not be edited, which is said."""
    with tempfile.TemporaryDirectory(prefix="stitch-") as folder:
        path = Path(folder) / name
        path.write_text(text)
        try:
            with app.suspend():
                done = subprocess.run([*command(), str(path)], check=False)
        except SuspendNotSupported:
            app.notify("an editor needs a terminal of its own", severity="error", markup=False)
            return None
        except OSError as error:
            app.notify(f"{command()[0]}: {error.strerror}; set $EDITOR", severity="error", markup=False)
            return None
        if done.returncode:
            said = f"{command()[0]} exited {done.returncode}: nothing changed"
            app.notify(said, severity="warning", markup=False)
            return None
        return path.read_text()
