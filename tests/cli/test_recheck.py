"""What counts as drift between an iteration's verdict and another one of today."""

import pytest

from stitch_tui.recheck import Recheck, compared
from stitch_tui.tools.errors import ExitCode
from stitch_tui.tools.history import Iteration, Kind, Outcome
from stitch_tui.tools.verdict import Category, Ratio, Samples, Timing, Verdict

H200, EMULATOR = "cuda NVIDIA H200 sm_90", "emulator"


def before(device: str = H200, time_us: float | None = 100.0) -> Iteration:
    return Iteration(
        session="s", iteration=3, kind=Kind.OPTIMISE, outcome=Outcome.KEPT, verdict=Category.CORRECT,
        device=device, time_us=time_us, time_interval_us=(time_us - 1, time_us + 1) if time_us else None,
    )  # fmt: skip


def now(time_us: float | None = 100.0, device: str = H200, category: Category = Category.CORRECT) -> Verdict:
    timing = None
    if time_us is not None:
        samples = Samples(median_us=time_us, low_us=time_us - 1, high_us=time_us + 1, count=20)
        timing = Timing(
            candidate=samples, baselines={"eager": samples}, speedups={"eager": Ratio(value=1, low=1, high=1)}
        )
    return Verdict(category=category, device=device, summary="as measured", timing=timing)


@pytest.mark.parametrize(
    ("then", "today", "drift", "note"),
    [
        (before(), now(), "", ""),
        (before(), now(105.0), "", ""),
        (before(), now(50.0), "", ""),
        (before(), now(130.0), "takes 130.0 us now", ""),
        (before(), now(category=Category.NUMERICS), "is numerics now: as measured", ""),
        (before(), now(500.0, "cuda NVIDIA A100 sm_80"), "", "times are not compared"),
        (before(), now(None), "", "not now"),
        (before(EMULATOR, None), now(None, EMULATOR), "", ""),
        (before(), now(category=Category.ENVIRONMENT), "", "could not be judged here"),
    ],
)
def test_only_what_got_worse_on_the_same_device_is_drift(
    then: Iteration, today: Verdict, drift: str, note: str
) -> None:
    worse, told = compared(then, today)
    assert bool(worse) == bool(drift)
    assert drift in "".join(worse)
    assert bool(told) == bool(note)
    assert note in "".join(told)


def test_drift_is_an_exit_code() -> None:
    assert Recheck(before(), now(130.0), ("slower",), ()).exit_code == ExitCode.GOAL_NOT_MET
    assert Recheck(before(), now(), (), ()).exit_code == ExitCode.GOAL_MET
    unable = Recheck(before(), now(category=Category.ENVIRONMENT), (), ("unable",))
    assert unable.exit_code == ExitCode.ENVIRONMENT
