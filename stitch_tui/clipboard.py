"""Copying text: a local tool where there is one, the terminal's own sequence (OSC 52), else a file.

Says which one was used, because nobody can see whether a terminal took what it was sent.
"""

import base64
import os
import shutil
import subprocess
from pathlib import Path

from stitch_tui.files import write_atomically
from stitch_tui.tools.paths import state_dir

OSC_BYTES = 74_000
"""Longest text that terminals are known to take."""
_TOOLS = {
    "WAYLAND_DISPLAY": ["wl-copy"],
    "DISPLAY": ["xclip", "-selection", "clipboard"],
}


def sequence(text: str, *, tmux: bool) -> str:
    """The escape sequence that puts `text` on the clipboard; inside tmux it is passed through."""
    payload = base64.b64encode(text.encode(errors="replace")).decode()
    plain = f"\x1b]52;c;{payload}\x07"
    return f"\x1bPtmux;{plain.replace(chr(27), chr(27) * 2)}\x1b\\" if tmux else plain


def tool() -> list[str] | None:
    """The local clipboard's command, unless this is a remote login."""
    if "SSH_CONNECTION" in os.environ:
        return None
    for variable, command in _TOOLS.items():
        if os.environ.get(variable) and shutil.which(command[0]):
            return command
    return None


def run_tool(command: list[str], text: str) -> bool:
    """Give `text` to a clipboard command; False: it failed."""
    try:
        done = subprocess.run(command, input=text.encode(errors="replace"), timeout=3, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def save(text: str) -> Path:
    """The last resort: a file."""
    path = state_dir("clipboard") / "copied.txt"
    write_atomically(path, text)
    return path
