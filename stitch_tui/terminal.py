"""An app and the terminal that it runs on: signals, a terminal that goes, its title."""

import asyncio
import os
import select
import signal
import sys
import threading
import time
from functools import partial

from stitch_tui.key_order import KeysInOrder
from stitch_tui.tools.errors import ExitCode

GRACE_S = 5.0
"""What a viewer has for ending once its terminal is gone."""


class TerminalApp(KeysInOrder):
    """Leaves its terminal as it found it, however it ends."""

    def on_mount(self) -> None:
        self._catch_signals()
        if not (self.is_headless or self.is_web) and sys.stdin and sys.stdin.isatty():
            watching = asyncio.get_running_loop(), sys.stdin.fileno()
            threading.Thread(target=self._watch_terminal, args=watching, daemon=True).start()

    def on_unmount(self) -> None:
        loop = asyncio.get_running_loop()
        for received in (signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(received)
        self.set_title("")

    def _catch_signals(self) -> None:
        """A signal restores the terminal and ends the viewer, not the run."""
        loop = asyncio.get_running_loop()
        for received in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(received, partial(self.exit, return_code=128 + received))

    def _watch_terminal(self, loop: asyncio.AbstractEventLoop, terminal: int) -> None:
        """End when the terminal has gone, with a signal or without: reading it would spin for ever.

        From a thread, since the loop may stand still: it waits for a writer that such a terminal ended.
        """
        watched = select.poll()
        watched.register(terminal, 0)  # a hangup is always told
        watched.poll()
        loop.call_soon_threadsafe(partial(self.exit, return_code=ExitCode.HANGUP))
        time.sleep(GRACE_S)
        os._exit(ExitCode.HANGUP)

    def set_title(self, text: str) -> None:
        """The title of the terminal's window; empty: none of ours."""
        if self._driver and not self.is_headless and not self.is_web:
            safe = "".join(c for c in text if c.isprintable())
            self._driver.write(f"\x1b]0;{safe}\x07")
