"""``stitch --plain``: the stream as lines, and decisions as typed words."""

import asyncio
from collections.abc import Iterator

import pytest
from shown_sessions import FakeEngine, emulated, in_progress

from stitch_tui.agents import events
from stitch_tui.agents.commands import Command, Decide, Pause, Redirect, Skip, Stop
from stitch_tui.agents.state import Status
from stitch_tui.linear import Linear, understood
from stitch_tui.session import Gone
from stitch_tui.tools.errors import UsageError
from stitch_tui.view.board import Board

MET = events.SessionFinished(status=Status.GOAL_MET, exit_code=0, reason="all correct")


class Going(FakeEngine):
    """An engine whose run goes on until the viewer leaves."""

    async def run(self, board: Board) -> None:
        await super().run(board)
        await asyncio.Event().wait()


def board() -> Board:
    made = Board()
    asyncio.run(FakeEngine(in_progress()).run(made))
    return made


def typed(*lines: str) -> Iterator[str]:
    yield from (f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("approve s05", Decide(subtask="s05", generation=0)),
        ("/approve", Decide(generation=0)),
        ("reject 5 too small", Decide(subtask="s05", choice="reject", text="too small", generation=0)),
        ("redirect one warp a row", Redirect(subtask="s02", text="one warp a row", generation=0)),
        ("3: use shared memory", Redirect(subtask="s03", text="use shared memory", generation=0)),
        ("skip s03", Skip(subtask="s03", generation=0)),
        ("pause", Pause(generation=0)),
        ("stop enough", Stop(text="enough", generation=0)),
    ],
)
def test_a_typed_line_is_a_command(line: str, command: Command) -> None:
    make = understood(line, board()).make
    assert make
    assert make(0) == command


@pytest.mark.parametrize("line", ["aprove", "yes", "use shared memory", "/nothing"])
def test_words_that_name_no_subtask_are_sent_to_nobody(line: str) -> None:
    with pytest.raises(UsageError, match="no command"):
        understood(line, board())


def test_lines_are_answered_and_leaving_leaves_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    engine = Going(in_progress())
    lines = typed("aprove", "approve s05", "report", "edit", "help", "quit")
    assert asyncio.run(Linear(engine, lines).run()) == 0
    assert engine.told == [Decide(subtask="s05", generation=0)]
    said = capsys.readouterr().err
    for text in (
        "s01  rms_norm+silu",
        "? s05 to decide: approve [ID]",
        "✗ no command aprove",
        "takes effect now",
        "s02  ◉ measuring",
        "edit needs the screen (from another terminal: stitch ctl edit ID)",
        "redirect [ID] TEXT",
        "detached; the run goes on",
    ):
        assert text in said, text
    assert "\x1b" not in said
    assert "\r" not in said


def test_it_ends_as_the_session_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert asyncio.run(Linear(FakeEngine([*emulated(), MET]), typed()).run()) == 0
    assert "goal met: all correct" in capsys.readouterr().out
    killed = FakeEngine(emulated())
    killed.trouble = "killed"
    with pytest.raises(Gone):
        asyncio.run(Linear(killed, typed()).run())
