"""Helpers that tests of several folders share lie in ``tests/``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
