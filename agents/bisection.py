"""A program that is wrong though each kernel is correct alone: which kernel is it?"""

from collections.abc import Awaitable, Callable, Sequence

Passes = Callable[[Sequence[str]], Awaitable[bool]]
"""Is the program correct with these subtasks' kernels, and the reference for all others?"""


async def guilty(subtasks: Sequence[str], passes: Passes) -> str | None:
    """The subtask whose kernel alone makes the program wrong; None when only several together do.

    Halves what is left each time: with the one half, then with the other.
    """
    left = list(subtasks)
    while len(left) > 1:
        half = len(left) // 2
        for part in (left[:half], left[half:]):
            if not await passes(part):
                left = part
                break
        else:
            return None
    return left[0] if left else None
