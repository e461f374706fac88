"""Orders to the engine: one after the other, for the generation that is shown; what it answers is told."""

from collections.abc import Callable, Sequence

from textual.screen import Screen

from stitch_tui.agents.commands import Command
from stitch_tui.link import Feed
from stitch_tui.tools.errors import StitchError
from stitch_tui.view.board import Board

Make = Callable[[int], Command]
"""Makes a command for a generation."""


class Ordering(Screen[None]):
    """A screen that has a run to steer."""

    def __init__(self, board: Board, feed: Feed) -> None:
        super().__init__()
        self.board, self.feed = board, feed

    @property
    def steerable(self) -> bool:
        """Is there a run, and can it be reached?"""
        return self.board.running and not self.feed.trouble

    def order(self, *makes: Make) -> None:
        """Have the engine do these one after the other; the first refusal ends it."""
        self.run_worker(self.ordered(makes), group="orders", exit_on_error=False)

    async def ordered(self, makes: Sequence[Make]) -> bool:
        """The same, and wait for it; were all of them done?"""
        generation = self.board.session.generation
        text = ""
        for make in makes:
            try:
                reply = await self.feed.send(make, generation)
            except (StitchError, ValueError) as error:
                self.tell(sentence(error), bad=True)
                return False
            if not reply.ok:
                self.tell(reply.text, bad=True)
                return False
            generation, text = reply.generation, reply.text
        if text:
            self.tell(f"takes effect {text}")
        return True

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Say something in passing."""
        self.notify(text, severity="error" if bad else "information", timeout=6 if bad else 3, markup=False)


def sentence(error: Exception) -> str:
    """An error for a person; pydantic's many lines become the one that says what is wrong."""
    if isinstance(error, StitchError):
        return str(error)
    lines = str(error).splitlines()
    return lines[2].strip() if len(lines) > 2 else str(error)
