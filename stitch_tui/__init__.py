"""stitch: turns a PyTorch program into a verified, profiled, end-to-end CUDA program.

The top-level folders ``agents/``, ``tools/`` and ``themes/`` of a checkout are the subpackages
``stitch_tui.agents``, ``stitch_tui.tools`` and ``stitch_tui.themes``.  An installed wheel has them in
place; in a bare checkout the lines below add the checkout's root to this package's search path.
"""

import os

__version__ = "0.1.0"

_root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if all(os.path.isfile(os.path.join(_root, part)) for part in ("pyproject.toml", "agents/__init__.py")):
    __path__.append(_root)
