"""What profilers measured, on the Profile screen and in the Verifier pane."""

import asyncio
from pathlib import Path

from on_screen import shown
from shown_sessions import BETTER, attempt, beginning, correct

from stitch_tui.agents import events
from stitch_tui.agents.diagnosis import advice
from stitch_tui.agents.events import Event
from stitch_tui.agents.state import SubtaskState
from stitch_tui.tools.iteration import Outcome
from stitch_tui.tools.profiling.ncu_csv import launches, profiles
from stitch_tui.tools.profiling.profile import (
    CallTime,
    CopyTime,
    Evidence,
    KernelCode,
    KernelTime,
    Profile,
    RangeTime,
    SystemProfile,
    Trace,
)

RECORDED = Path(__file__).parents[1] / "agents" / "recorded" / "profiles"
LAUNCH_BOUND = SystemProfile(
    runs=5, wall_us=533, busy_us=52.6, launch_us=432, launches=64, gaps=63, gap_us=467, longest_gap_us=91,
    kernels=(KernelTime(kernel="raised[/bold]", launches=64, time_us=52.6, blocks=16, threads=256),),
    calls=(CallTime(call="cudaLaunchKernel", count=64, time_us=432),),
    copies=(CopyTime(kind="HtoD", count=2, time_us=3.5, nbytes=4096),),
)  # fmt: skip


def spilling() -> Profile:
    """As recorded on an H200, with what the compiler says."""
    kernels, _ = profiles(launches((RECORDED / "spill.csv").read_text()))
    code = KernelCode(kernel=kernels[0].kernel, registers=32, spill_bytes=2248, tensor={"HMMA": 8})
    return Profile(
        evidence=Evidence.NCU, why="the one kernel", tool="ncu 2025.3.1", kernels=kernels, code=(code,),
        notes=("this ncu does not know one[/bold] metric",),
    )  # fmt: skip


def session(trace: Trace, profile: Profile | None) -> list[Event]:
    start, reference, plan = beginning()
    assert isinstance(reference, events.ReferenceProfiled)
    verdict = correct(1.7).model_copy(update={"profile": profile})
    program = correct(1.3).model_copy(
        update={
            "profile": Profile(
                evidence=Evidence.NSYS,
                why="the whole program",
                system=LAUNCH_BOUND.model_copy(
                    update={"ranges": (RangeTime(name="s01", launches=1, time_us=26.3),)}
                ),
                system_evidence=Evidence.NSYS,
            )
        }
    )
    made = [start, reference.model_copy(update={"trace": trace}), plan]
    made += attempt(1, "s01", 1, BETTER, verdict, Outcome.KEPT)
    if profile and (said := advice(profile)):
        made.append(events.Advised(iteration=1, subtask="s01", advice=said))
    made.append(events.SubtaskFinished(subtask="s01", state=SubtaskState.DONE, best=1))
    return made + attempt(2, "", 1, BETTER, program, Outcome.KEPT)


def page(trace: Trace, profile: Profile | None) -> str:
    """The Profile screen's text."""

    async def look() -> str:
        async with shown(session(trace, profile)) as screen:
            await screen.press("slash", *"profile", "enter")
            return screen.text("#text")

    return asyncio.run(look())


def test_the_profile_screen_shows_the_trace_and_what_limits_each_version() -> None:
    text = page(Trace(system=LAUNCH_BOUND, evidence=Evidence.NSYS), spilling())
    assert "traced by nsys" in text
    assert "launch-bound: the device is busy 10%" in text
    for words in ("raised[/bold]", "16 x 256", "cudaLaunchKernel", "HtoD", "4.0 KB", "the longest 91 µs"):
        assert words in text
    assert "s01, best version" in text
    assert "code: 32 registers, 2248 bytes spilled, 8 HMMA" in text
    assert "→ keep fewer values alive" in text
    assert "Stitched program" in text
    assert "s01      1        26.3 µs  50%" in text


def test_the_profile_screen_says_why_there_is_no_trace() -> None:
    text = page(Trace(why="nsys is not installed; torch's profiler: none[/]"), None)
    assert "no trace: nsys is not installed; torch's profiler: none[/]" in text
    assert "best version" not in text


def test_a_busy_device_is_said_to_be_limited_by_its_kernels() -> None:
    busy = LAUNCH_BOUND.model_copy(update={"busy_us": 500.0})
    text = page(Trace(system=busy, evidence=Evidence.CUPTI, why="nsys is not installed"), None)
    assert "traced by cupti, as nsys is not installed" in text
    assert "neither launch- nor host-bound: the device is busy 94% of a run" in text


def test_the_verifier_pane_shows_the_profile_and_its_evidence_level() -> None:
    async def look() -> None:
        async with shown(session(Trace(), spilling()), size=(200, 90)) as screen:
            screen.screen.planner.choose("s01")
            await screen.drawn()
            text = screen.text("#verdict-text")
            assert "PROFILE" in text
            assert "occupancy" in text
            assert "note: this ncu does not know one[/bold] metric" in text
            assert "measured with event and handshake times; profile by ncu 2025.3.1" in text

    asyncio.run(look())
