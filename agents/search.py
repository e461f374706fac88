"""The parameters of a subtask's kernels are searched once, before its first attempt: by a race.

The winner is an attempt like any other: a race gives no verdict.
"""

from stitch_tui.agents import events
from stitch_tui.agents.record import Record
from stitch_tui.agents.roles import CodeBrief, Coder, Verifier
from stitch_tui.agents.settings import SearchSettings
from stitch_tui.tools.errors import Denied, LimitReached, StitchError
from stitch_tui.tools.race import Race

FEWEST = 2
"""Variants that make a race."""


class Search:
    """The races of one run."""

    def __init__(self, record: Record, coder: Coder, verifier: Verifier, settings: SearchSettings) -> None:
        self._record, self._coder, self._verifier = record, coder, verifier
        self._settings = settings

    async def before(self, brief: CodeBrief) -> bool:
        """Race the variants of a subtask that has none behind it; True when its state says more now.

        On the emulator times mean nothing: there is no race.  One that fails, with its judge or without, is
        over and costs the order alone: what is wrong with the machine, the first attempt finds too.

        Raises:
            Overtaken: a human turned the step back.
            Denied: a rule denies builds or launches.
            LimitReached: the run's time is up.
        """
        subtask = brief.subtask
        begun = subtask.race is not None or subtask.is_host or brief.attempts
        if begun or not self._settings.seconds or not brief.device.startswith("cuda"):
            return False
        variants = self._coder.variants(brief, self._settings.variants)
        if len(variants) < FEWEST:
            return False
        sources = {variant.strategy: variant.source for variant in variants}
        try:
            race = await self._verifier.race(subtask, sources, self._settings.seconds)
        except (Denied, LimitReached):
            raise
        except (StitchError, OSError) as fault:
            self._record.emit(events.Warned(text=f"{subtask.id}: its variants were not raced: {fault}"))
            race = Race()
        self._record.emit(events.Raced(subtask=subtask.id, race=race))
        return True
