"""What counts as drift between an iteration's verdict and another one of today."""

import pytest

from stitch_tui.recheck import Recheck, compared
from stitch_tui.tools.errors import ExitCode
from stitch_tui.tools.history import Iteration, Kind, Outcome
from stitch_tui.tools.verdict import Build, Category, Ratio, Samples, Timing, Verdict

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


def made_on(compiler: str, **environment: str) -> Verdict:
    timed = now()
    assert timed.timing
    timing = timed.timing.model_copy(update={"environment": environment})
    build = Build(ok=True, device="cuda", compiler=compiler)
    return timed.model_copy(update={"timing": timing, "build": build})


def test_what_changed_since_is_a_note_and_no_drift() -> None:
    then = made_on("nvcc 13.0", torch="2.11.0", cuda="13.0", driver="580.1")
    today = made_on("nvcc 13.1", torch="2.12.0", cuda="13.0", driver="590.2", cache="warm")
    worse, told = compared(before(), today, then)
    assert worse == ()
    assert told == (
        "torch was 2.11.0, and is 2.12.0 now",
        "driver was 580.1, and is 590.2 now",
        "compiler was nvcc 13.0, and is nvcc 13.1 now",
    )
    assert compared(before(), today, today) == ((), ())


def test_what_changed_is_told_of_a_verdict_that_drifted_too() -> None:
    then = made_on("nvcc 13.0", torch="2.11.0", driver="580.1")
    today = made_on("nvcc 13.1", torch="2.12.0", driver="590.2")
    wrong = today.model_copy(update={"category": Category.NUMERICS})
    drift, told = compared(before(), wrong, then)
    assert Recheck(before(), wrong, drift, told).exit_code == ExitCode.GOAL_NOT_MET
    assert told == (
        "torch was 2.11.0, and is 2.12.0 now",
        "driver was 580.1, and is 590.2 now",
        "compiler was nvcc 13.0, and is nvcc 13.1 now",
    )


def test_a_change_of_torch_is_told_where_nothing_was_timed() -> None:
    then, today = (
        now(None, EMULATOR).model_copy(update={"numbers": {"torch": torch}}) for torch in ("2.11.0", "2.12.0")
    )
    assert compared(before(EMULATOR, None), today, then) == ((), ("torch was 2.11.0, and is 2.12.0 now",))
