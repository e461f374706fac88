"""The run's limit on wall time; what it waits for a human does not count."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic

from stitch_tui.tools.errors import LimitReached


class Deadline:
    """Begins with the run.

    Args:
        waited_s: how long the run has waited for a human so far.
    """

    def __init__(self, minutes: float, waited_s: Callable[[], float]) -> None:
        self._minutes, self._waited_s = minutes, waited_s
        self._started = monotonic()

    @property
    def left_s(self) -> float:
        """Seconds; negative once it has passed."""
        return self._minutes * 60 + self._waited_s() - (monotonic() - self._started)

    def check(self) -> None:
        """Pass while time is left.

        Raises:
            LimitReached: the run's time is up.
        """
        if self.left_s < 0:
            raise self._reached()

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Cancel what runs inside when the run's time is up: a model may think, or be waited for, for hours.

        Raises:
            LimitReached: it was.
        """
        self.check()
        try:
            async with asyncio.timeout(self.left_s) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._reached() from None

    def _reached(self) -> LimitReached:
        return LimitReached(f"the run's limit of {self._minutes:g} minutes is reached")
