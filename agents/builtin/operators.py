"""The operator table: each ATen operator as a scalar expression with PyTorch's own semantics.

To add one, write its formula in `arithmetic`, `activations` or `reductions` under its ATen name.
"""

from stitch_tui.agents.builtin import activations, arithmetic, reductions
from stitch_tui.agents.builtin.table import CASTS, IDENTITY, POINTWISE, RESHAPES, ROWS

__all__ = ["CASTS", "IDENTITY", "POINTWISE", "RESHAPES", "ROWS", "activations", "arithmetic", "reductions"]
