"""This program as another process: it is the same code, whatever the folder that it works in holds."""

import sys
from pathlib import Path

import stitch_tui

_BEGIN = "import sys; sys.path[:0] = {sys.argv.pop(1)} - {*sys.path}; from stitch_tui.cli import main; main()"

STITCH = (sys.executable, "-P", "-c", _BEGIN, str(Path(stitch_tui.__file__).resolve().parents[1]))
"""The ``stitch`` command.  ``python -m`` would import modules from the folder where it starts."""
