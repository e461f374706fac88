"""What timed blocks mean: throttled ones are left out, clocks are told, contestants kept apart."""

from typing import Any

from stitch_tui.tools.gpu_state import Sample
from stitch_tui.tools.timing import REPLACED, Clocks, clocks, timing_of, unthrottled

BLOCKS = {
    "candidate": [[10.0, 11.0]] * 8,
    "eager": [[20.0, 22.0]] * 8,
    "eager-high": [[5.0, 5.5]] * 8,
}


def report(blocks: dict[str, list[list[float]]]) -> dict[str, Any]:
    return {
        "blocks": blocks,
        "baselines": ["eager"],
        "lower_precision": ["eager-high"],
        "bind_us": None,
        "environment": {"cache": "cold L2"},
        "notes": ["a note"],
    }


def observed(throttled: dict[int, tuple[str, ...]], count: int = 8) -> Clocks:
    found = Clocks("")
    found.samples = {
        block: Sample(sm_clock_mhz=1900 + block, power_w=500.0, throttled=throttled.get(block, ()))
        for block in range(count)
    }
    return found


def test_what_a_program_shall_replace_is_no_baseline() -> None:
    replaced = BLOCKS | {REPLACED: [[15.0, 16.5]] * 8}
    timing = timing_of(report(replaced), observed({}))
    assert timing.replaced is not None
    assert timing.replaced.speedup.value == 1.5
    assert timing.replaced.speedup.verdict == "faster"
    assert list(timing.speedups) == ["eager"]
    assert timing_of(report(BLOCKS), observed({})).replaced is None


def test_a_timing_has_medians_speedups_and_clocks() -> None:
    timing = timing_of(report(BLOCKS), observed({}))
    assert timing.candidate.median_us == 10.5
    assert timing.candidate.count == 16
    assert timing.speedups["eager"].value == 2.0
    assert timing.best_baseline == "eager"
    assert timing.lower_precision["eager-high"].speedup.value == 0.5
    assert timing.environment == {
        "cache": "cold L2",
        "sm_clock_mhz": 1903.5,
        "power_w": 500.0,
        "throttled": [],
    }
    assert timing.notes == ("a note",)


def test_throttled_blocks_are_left_out_and_counted() -> None:
    slowed = {name: [*found[:6], [99.0, 99.0], [99.0, 99.0]] for name, found in BLOCKS.items()}
    timing = timing_of(report(slowed), observed({6: ("power cap",), 7: ("hardware thermal",)}))
    assert timing.candidate.median_us == 10.5
    assert timing.candidate.count == 12
    assert timing.environment["throttled"] == ["hardware thermal", "power cap"]
    assert "2 of 8 blocks left out: the GPU throttled" in timing.notes


def test_nothing_is_left_out_where_nearly_all_was_throttled() -> None:
    blocks, note = unthrottled(BLOCKS, range(5))
    assert blocks == BLOCKS
    assert note == ("the GPU throttled in 5 of 8 blocks: none was left out",)


def test_without_a_gpu_no_clock_is_read() -> None:
    with clocks("") as found:
        found.heard("block", {"block": 0})
        found.heard("stage", {"stage": "timing"})
    assert found.samples == {}
    assert found.as_environment() == {}
