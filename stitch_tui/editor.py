"""A file in the person's own editor; the terminal is theirs meanwhile."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stitch_tui.tools import scratch

if TYPE_CHECKING:
    from textual.app import App


def command() -> list[str]:
    """``$VISUAL``, ``$EDITOR``, else vi; empty: there is none."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or shutil.which("vi") or ""
    return shlex.split(chosen)


def edit(path: Path) -> bool:
    """Run the editor on a file; False: there is none, no terminal to run it in, or it failed."""
    words = command()
    return bool(words) and sys.stdin.isatty() and subprocess.run([*words, path], check=False).returncode == 0


def edit_from(app: "App[Any]", path: Path) -> bool:
    """Run the editor on a file in the app's place; False: it could not be edited, which is said."""
    from textual.app import SuspendNotSupported

    words = command()
    if not words:
        app.notify("there is no editor: set $EDITOR", severity="error", markup=False)
        return False
    try:
        with app.suspend():
            done = subprocess.run([*words, path], check=False)
    except SuspendNotSupported:
        app.notify("an editor needs a terminal of its own", severity="error", markup=False)
        return False
    except OSError as error:
        app.notify(f"{words[0]}: {error.strerror}; set $EDITOR", severity="error", markup=False)
        return False
    if done.returncode:
        app.notify(f"{words[0]} exited {done.returncode}: nothing changed", severity="warning", markup=False)
    return done.returncode == 0


def edited(app: "App[Any]", text: str, name: str) -> str | None:
    """`text` as the editor left it; None when it could not be edited, which is said."""
    with scratch.folder("stitch-") as folder:
        path = folder / name
        path.write_text(text)
        return path.read_text() if edit_from(app, path) else None
