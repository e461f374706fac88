"""stitch: turns a PyTorch program into a verified, profiled, end-to-end CUDA program.

The top-level folders ``agents/``, ``tools/`` and ``themes/`` of a checkout are the subpackages
``stitch_tui.agents``, ``stitch_tui.tools`` and ``stitch_tui.themes``.  An installed wheel has them in
place; in a bare checkout the lines below add the checkout's root to this package's search path.
"""

from pathlib import Path

__version__ = "0.1.0"

_root = Path(__file__).resolve().parent.parent
if (_root / "pyproject.toml").is_file() and (_root / "agents" / "__init__.py").is_file():
    __path__.append(str(_root))
