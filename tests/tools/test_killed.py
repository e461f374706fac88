"""A runner that somebody killed is run again; one that dies again is what its report says."""

import asyncio
from typing import Any

import pytest

from stitch_tui.tools.killed import NOTE, unless_killed

CORRECT: dict[str, Any] = {"category": "correct", "findings": [], "notes": []}


def ended_by(signal: str) -> dict[str, Any]:
    finding = {"message": f"killed by {signal}", "detail": {"signal": signal}}
    return {"category": "out_of_memory_host", "findings": [finding], "notes": []}


@pytest.mark.parametrize(
    ("reports", "asked", "category", "notes"),
    [
        ([CORRECT], 1, "correct", []),
        ([ended_by("SIGSEGV")], 1, "out_of_memory_host", []),
        ([ended_by("SIGKILL"), CORRECT], 2, "correct", [NOTE]),
        ([ended_by("SIGKILL"), ended_by("SIGKILL"), CORRECT], 2, "out_of_memory_host", [NOTE]),
    ],
)
def test_a_second_chance_is_for_the_killed_and_is_the_last(
    reports: list[dict[str, Any]], asked: int, category: str, notes: list[str]
) -> None:
    given = iter([dict(report) for report in reports])
    count, announced = 0, []

    async def ask() -> dict[str, Any]:
        nonlocal count
        count += 1
        return next(given)

    found = asyncio.run(unless_killed(ask, lambda: announced.append(count)))
    assert (count, found["category"], found["notes"]) == (asked, category, notes)
    assert announced == [1] * (asked - 1), "between the attempts"
