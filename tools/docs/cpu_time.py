"""A bound on the computing that one foreign file may cost, whatever its parser runs into."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from stitch_tui.tools.errors import UsageError

AGAIN_S = 1.0
"""A parser may swallow what is raised in its midst: it is raised once more after this time."""


@contextmanager
def cpu_limit(seconds: float, where: str) -> Iterator[None]:
    """Ends what is done within after so much time of this process's own; waiting costs nothing.

    Signals reach the main thread alone: elsewhere nothing is bounded.

    Raises:
        UsageError: it took longer.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_signal: int, _frame: FrameType | None) -> None:
        raise UsageError(
            "it takes too long to read",
            where=where,
            why=f"over {seconds:g} s of computing",
            advice="add a part of it",
        )

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
