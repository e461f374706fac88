"""A time limit that is reached on the emulator is a hang unless the work could take so long."""

import pytest

from stitch_tui.tools.slowness import is_merely_slow

SMALL = {"elements": {"small_odd": 300, "full": 1500}, "event_us": {"task/small_odd": 14.0}}


@pytest.mark.parametrize(
    ("numbers", "flops", "stage", "slow"),
    [
        (SMALL, 1500.0, "emulator", False),
        (SMALL, 1500.0, "correctness", False),
        (SMALL, 4e6, "emulator", True),
        (SMALL, 4e6, "correctness", False),
        ({"elements": {"full": 1500}}, 0.0, "emulator", False),
        ({"elements": {"full": 10_000_000}}, 0.0, "emulator", True),
        ({}, 0.0, "correctness", False),
        # a product whose sides grow by a hundred takes a million times as long
        (
            {"elements": {"small": 3 * 8**2, "full": 3 * 800**2}, "event_us": {"sorted/small": 20.0}},
            0.0,
            "correctness",
            True,
        ),
    ],
)
def test_slowness_is_believed_where_the_work_is_large(
    numbers: dict[str, dict[str, float]], flops: float, stage: str, slow: bool
) -> None:
    assert is_merely_slow(numbers, flops, 60.0, stage) is slow
