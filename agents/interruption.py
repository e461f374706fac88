"""SIGINT, SIGTERM and SIGHUP as the cancellation of the running task."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from stitch_tui.tools.errors import ExitCode

_CODES = {
    signal.SIGHUP: ExitCode.HANGUP,
    signal.SIGINT: ExitCode.INTERRUPT,
    signal.SIGTERM: ExitCode.TERMINATED,
}


class Interruption:
    """The signal that arrived, if one did; it cancels the task that made this object, once."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._task = asyncio.current_task()

    @property
    def code(self) -> ExitCode:
        """The exit code that goes with the signal."""
        return _CODES[self.signal] if self.signal else ExitCode.GOAL_NOT_MET

    def absorbed(self) -> bool:
        """After a CancelledError: was it the signal's?  Then the task may go on, to say so."""
        if self.signal is None or self._task is None:
            return False
        self._task.uncancel()
        return True

    def _arrive(self, received: signal.Signals) -> None:
        if self.signal is None and self._task is not None:
            self.signal = received
            self._task.cancel()


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Handle the signals inside the context; to be entered in the task that they shall cancel."""
    loop, interruption = asyncio.get_running_loop(), Interruption()
    for received in _CODES:
        loop.add_signal_handler(received, interruption._arrive, received)
    try:
        yield interruption
    finally:
        for received in _CODES:
            loop.remove_signal_handler(received)
