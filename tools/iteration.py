"""What an iteration is for, and how it ends: words that the session's state and its git history share."""

from enum import StrEnum


class Kind(StrEnum):
    """What an iteration was for."""

    DRAFT = "draft"
    """The first code of a subtask."""
    REPAIR = "repair"
    OPTIMISE = "optimise"
    INTEGRATE = "integrate"
    """The whole program, stitched."""
    PROGRAM = "program"
    """The host side of the stitched program, written by the Coder."""
    HUMAN = "human"
    """The human's own edit."""
    RESTORE = "restore"
    """An earlier iteration's files, brought back by restore or undo."""
    SEAL = "seal"
    """The best iteration's files, so that the branch ends with them."""


class Outcome(StrEnum):
    """How an iteration ended."""

    KEPT = "kept"
    SLOWER = "slower"
    WRONG = "wrong"
    ERROR = "error"
    REDIRECTED = "redirected"
    CANCELLED = "cancelled"
