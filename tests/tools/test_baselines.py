"""When baselines compile beside checks, and that none does beside a timing."""

import asyncio
from typing import Any

import pytest

from stitch_tui.tools.baselines import compiling
from stitch_tui.tools.bench import Bench, Cuda
from stitch_tui.tools.errors import EnvironmentFault, JudgeKilled, StitchError
from stitch_tui.tools.toolkit import Toolkit

PROGRAM = {"kind": "program"}


class Judge:
    """Notes what it is asked; may be dead."""

    def __init__(self) -> None:
        self.asked, self.dead = list[str](), False

    async def call(self, method: str, params: Any = None, *, timeout: float, on_event: Any = None) -> Any:
        if self.dead:
            raise JudgeKilled("the reference was killed")
        self.asked.append(method)


async def checked(judge: Judge, failure: BaseException | None = None) -> None:
    bench = Bench(judge, None, cuda=Cuda("NVIDIA H200", "sm_90", Toolkit(), cache=None))  # type: ignore[arg-type]
    async with compiling(bench, [PROGRAM, PROGRAM]):
        assert judge.asked == ["warm", "warm"]
        judge.dead = isinstance(failure, JudgeKilled)
        if failure:
            raise failure


def test_baselines_rest_after_the_checks() -> None:
    asyncio.run(checked(judge := Judge()))
    assert judge.asked == ["warm", "warm", "rest"]


def test_baselines_rest_after_checks_that_the_machine_ended() -> None:
    with pytest.raises(EnvironmentFault, match="no compiler"):
        asyncio.run(checked(judge := Judge(), EnvironmentFault("no compiler")))
    assert judge.asked == ["warm", "warm", "rest"]


@pytest.mark.parametrize("failure", [JudgeKilled("killed"), asyncio.CancelledError()])
def test_what_ended_the_checks_is_told(failure: BaseException) -> None:
    with pytest.raises(type(failure)) as caught:
        asyncio.run(checked(Judge(), failure))
    assert caught.value is failure or not isinstance(failure, StitchError)
