"""The operator table: each ATen operator as a scalar expression with PyTorch's own semantics.

To add one, write its formula in `arithmetic`, `activations`, `reductions` or `norms` under its ATen name.
"""

from stitch_tui.agents.builtin import activations, arithmetic, norms, reductions
from stitch_tui.agents.builtin.table import (
    CASTS,
    CHANNELS,
    COPIES,
    IDENTITY,
    POINTWISE,
    RESHAPES,
    ROWS,
    TUPLES,
    Operands,
)

__all__ = [
    "CASTS",
    "CHANNELS",
    "COPIES",
    "IDENTITY",
    "POINTWISE",
    "RESHAPES",
    "ROWS",
    "TUPLES",
    "Operands",
    "activations",
    "arithmetic",
    "norms",
    "reductions",
]
