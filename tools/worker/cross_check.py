"""Event times held against two other clocks: the judge's around bursts, and CUPTI's record of the device."""

import math
from statistics import median

from .answers import Done
from .candidate_fault import CandidateFault
from .cupti import library
from .timed_rig import TimedRig

AGREEMENT = 0.1
"""Relative difference between event times and the judge's clock, or CUPTI's, that is a finding."""
AGREEMENT_US = 2.0
"""Absolute difference that is never one: launch gaps are that long."""
HOST_US = {"library": 30.0, "module": 300.0}
"""What the runner's interpreter may need outside of the events, for a launch of a library or of a module
(on an H200's host 8 and 80 to 150)."""
SHORT_BURST, LONG_BURST = 10, 60
"""Launches of the bursts whose difference is timed by the judge; fewer, in proportion, for long launches."""
BURST_US = 6000.0
"""For a long burst of long launches."""
LEFT_US, LEFT_SHARE = 200.0, 0.02
"""For how long other streams may work on after a burst: as long as it takes to ask, and some of its time."""


def require_joined(done: Done) -> None:
    """Raise when the device worked on after the call's stream had come to its end.

    Raises:
        CandidateFault: for work on another stream, which no event has seen.
    """
    left_us = done.event_us
    if left_us > LEFT_US + LEFT_SHARE * sum(done.times_us):
        raise CandidateFault(
            "hack_suspected",
            f"work on another stream went on for {left_us:.0f} us after the call's own had ended",
            where="a timed burst",
        )


def launch_times(done: Done, count: int) -> list[float]:
    """Microseconds of each of a burst's `count` launches.

    Raises:
        CandidateFault: some launch has no time.
    """
    if len(done.times_us) != count or not all(0 < time < math.inf for time in done.times_us):
        raise CandidateFault("hack_suspected", f"times that no clock shows: {done.times_us[:3]}")
    return done.times_us


def apart(seen_us: float, event_us: float) -> bool:
    """Is there more to a launch than its events say, by another clock?"""
    return seen_us - event_us > max(AGREEMENT * event_us, AGREEMENT_US)


def _long_burst(launch_us: float) -> int:
    return max(4, min(LONG_BURST, int(BURST_US / launch_us)))


class CrossCheck:
    """Of one candidate.

    Args:
        notes: what the clocks say is added here.
        unchecked: what they do not agree about is added here.
    """

    def __init__(self, rig: TimedRig, notes: list[str], unchecked: list[str]) -> None:
        self.rig, self.notes, self.unchecked = rig, notes, unchecked

    def busy_share(self, launch_us: float) -> float | None:
        """The share of back-to-back launches in which the device worked; None: CUPTI does not say, or
        disagrees."""
        slope_us, event_us = self._clocked(launch_us)
        busy = self._watched(launch_us)
        self._agree(slope_us, event_us, confirmed=busy is not None)
        return busy

    def _watched(self, launch_us: float) -> float | None:
        """Event times of back-to-back launches against CUPTI's; the share in which the device worked.

        Last of all: a process that CUPTI watches launches more slowly ever after.
        """
        path, count = library(), _long_burst(launch_us)
        try:
            done = self.rig.watch(count, path) if path else None
        except CandidateFault as fault:  # what a profiler does to a process is not the candidate's fault
            self.unchecked.append(f"CUPTI: {fault.message}")
            return None
        if done is None or done.busy is None:
            self.unchecked.append(f"CUPTI: {done.unwatched if done else 'the library is not installed'}")
            return None
        event_us, busy_us = sum(done.times_us) / count, done.busy.us / count
        shown = f"{busy_us:.2f} us of device work a launch, events {event_us:.2f} us"
        self.notes.append(f"CUPTI: {shown}, {done.busy.pieces / count:g} kernels, copies and fills")
        if not apart(busy_us, event_us):
            return round(min(1.0, busy_us / event_us), 3)
        self.unchecked.append(f"event times: CUPTI shows {shown}: work that events do not see")
        return None

    def _clocked(self, launch_us: float) -> tuple[float, float]:
        """A back-to-back launch by the judge's clock, around two lengths of burst, and by its events."""
        long = _long_burst(launch_us)
        short = max(1, SHORT_BURST * long // LONG_BURST)
        walls: dict[int, list[float]] = {short: [], long: []}
        events: list[float] = []
        for _ in range(5):
            for count, found in walls.items():
                done = self.rig.burst(count, cold=False)
                require_joined(done)
                found.append(done.wall_us)
                events += done.times_us
        slope = (median(walls[long]) - median(walls[short])) / (long - short)
        event = median(events)
        self.notes.append(f"back to back: {event:.2f} us by events, {slope:.2f} us by the judge's clock")
        return slope, event

    def _agree(self, slope_us: float, event_us: float, *, confirmed: bool) -> None:
        """Hold the judge's clock against the events.

        Args:
            confirmed: by CUPTI; then what an interpreter needs for a launch explains a small difference.
        """
        if not apart(slope_us, event_us):
            return
        kind = "module" if self.rig.launch.module else "library"
        if confirmed and slope_us - event_us < HOST_US[kind]:
            self.notes.append("back to back the host is the slower one: the device waits for its launches")
            return
        self.unchecked.append(
            f"event times: the judge's clock shows {slope_us:.2f} us a launch, events {event_us:.2f} us:"
            " host-bound launches, or work that events do not see"
        )
