"""Python's collector, kept from stopping the screen: a full collection walks every object that there is.

What was imported stays for good and is not walked again; the full collections come a hundred times as
rarely.  The young generations, where nearly all garbage is, are collected as ever.
"""

import gc

YOUNG, MIDDLE, OLD = 5_000, 20, 1_000
"""Allocations, then collections of the generation before, between two collections of each."""


def rest() -> None:
    """Collect nothing until `settle`: importing a screen makes many objects, and no garbage."""
    gc.disable()


def settle() -> None:
    """What there is stays: call it once, when all modules are imported."""
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
    gc.enable()
