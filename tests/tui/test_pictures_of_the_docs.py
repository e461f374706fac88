"""The pictures in the documentation show the screen as it is."""

import subprocess
import sys
from pathlib import Path

import pytest

SCREENS = Path(__file__).parents[2] / "docs" / "screens"
DRAW = """
import sys
sys.path.insert(0, sys.argv[1])
import draw
print(*(path.name for path, picture in draw.pictures() if path.read_text() != picture))
"""


@pytest.mark.slow
def test_they_are_what_is_drawn_now() -> None:
    command = [sys.executable, "-c", DRAW, str(SCREENS)]
    changed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    assert changed == [], "look at what `python docs/screens/draw.py` makes of them"
