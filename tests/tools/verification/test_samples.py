from hypothesis import given, settings
from hypothesis import strategies as st

from stitch_tui.tools.verdict import Ratio, Samples
from stitch_tui.tools.worker.samples import interval, ratio, stable, summary

TIMES = st.lists(st.floats(1.0, 1e6), min_size=4, max_size=20)


@settings(deadline=None, max_examples=15)
@given(TIMES)
def test_a_program_against_itself_is_not_distinguishable(times: list[float]) -> None:
    found = Ratio(**ratio(times, times))
    assert found.value == 1.0
    assert found.verdict == "not distinguishable"


@settings(deadline=None, max_examples=15)
@given(TIMES, st.floats(1.1, 50))
def test_a_constant_speedup_is_found_whatever_the_clock_does(times: list[float], factor: float) -> None:
    found = Ratio(**ratio([factor * t for t in times], times))
    assert found.verdict == "faster"
    assert abs(found.value - factor) < 1e-6 * factor


@settings(deadline=None, max_examples=15)
@given(TIMES)
def test_intervals_hold_their_median(times: list[float]) -> None:
    low, high = interval(times)
    assert min(times) <= low <= high <= max(times)
    found = Samples.model_validate(summary(times, times))
    assert found.low_us <= found.median_us <= found.high_us


def test_a_warm_up_is_stable_when_its_last_medians_agree() -> None:
    assert not stable([100.0, 100.0])
    assert not stable([130.0, 100.0, 110.0])
    assert stable([300.0, 100.0, 101.0, 100.5])
