"""The limit on wall time ends what a run waits for, however long that would go on."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from stitch_tui.agents.deadline import Deadline
from stitch_tui.tools.errors import ExitCode, LimitReached

BRIEF = 1e-4
"""Minutes."""


def kept(deadline: Deadline, inside: Callable[[], Awaitable[object]]) -> None:
    """Run `inside` under the deadline."""

    async def run() -> None:
        async with deadline.kept():
            await inside()

    asyncio.run(run())


def test_what_never_ends_is_cancelled_when_the_time_is_up() -> None:
    ended = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleanly")

    with pytest.raises(LimitReached, match=r"limit of 0.0001 minutes is reached") as caught:
        kept(Deadline(BRIEF, lambda: 0.0), endless)
    assert caught.value.exit_code is ExitCode.LIMIT
    assert ended == ["cleanly"]


def test_nothing_begins_once_the_time_is_up() -> None:
    deadline = Deadline(BRIEF, lambda: -3600.0)
    with pytest.raises(LimitReached):
        deadline.check()
    with pytest.raises(LimitReached):
        kept(deadline, lambda: pytest.fail("it began"))


def test_time_spent_waiting_for_a_human_is_given_back() -> None:
    waited = [-3600.0]
    deadline = Deadline(BRIEF, lambda: waited[0])
    with pytest.raises(LimitReached):
        deadline.check()
    waited[0] = 3600.0
    deadline.check()
    kept(deadline, lambda: asyncio.sleep(0))


def test_a_timeout_of_something_inside_is_its_own() -> None:
    async def late() -> None:
        raise TimeoutError("the server's")

    with pytest.raises(TimeoutError, match="the server's"):
        kept(Deadline(60.0, lambda: 0.0), late)


def test_a_step_that_is_cancelled_meanwhile_is_not_taken_for_the_limit() -> None:
    async def cancelled() -> None:
        task = asyncio.current_task()
        assert task
        task.cancel()
        await asyncio.Event().wait()

    with pytest.raises(asyncio.CancelledError):
        kept(Deadline(60.0, lambda: 0.0), cancelled)
