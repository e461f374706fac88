"""The guilty kernel of a wrong program is found, and nobody is accused of what only several do together."""

import asyncio
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from stitch_tui.agents.bisection import guilty


@given(st.integers(1, 40), st.data())
def test_the_guilty_one_is_found_in_few_steps(count: int, data: st.DataObject) -> None:
    names = [f"s{at:02d}" for at in range(count)]
    culprit = data.draw(st.sampled_from(names))
    asked: list[Sequence[str]] = []

    async def passes(part: Sequence[str]) -> bool:
        asked.append(part)
        return culprit not in part

    assert asyncio.run(guilty(names, passes)) == culprit
    assert len(asked) <= 2 * (count - 1).bit_length()


def test_what_only_two_do_together_accuses_neither() -> None:
    async def passes(part: Sequence[str]) -> bool:
        return not {"a", "d"} <= set(part)

    assert asyncio.run(guilty(["a", "b", "c", "d"], passes)) is None
