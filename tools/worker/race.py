"""Which of several kernels for one region is likely the fastest?  An order to try them in, and no verdict.

Blocks are interleaved as in `contest`, without baselines or a look at the results.  A contestant that
fails is left out with its reason, and the others race on; one that is far behind has no more blocks.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median

from . import samples
from .candidate_fault import CandidateFault, Unsupported
from .cross_check import launch_times, require_joined
from .device_probe import require_device
from .examination import border_of
from .launch import Launch
from .session import Emit, Json, Session
from .slots import Target
from .target import target_of
from .timed_inputs import affordable, drawn, others
from .timed_rig import TimedRig

STARTING = 0.6
"""Share of a race's time after which nobody else starts, so that those who did are timed."""
WARM_UP = 2
"""Bursts ahead of the blocks."""
SURE, BEHIND = 3, 1.25
"""After so many blocks those have no more whose best one takes so many times the leader's median."""
LEAST_SECONDS = 1.0
"""For one burst."""
NO_TIME, NO_MEMORY = "no time was left", "no device memory was left"


@dataclass(frozen=True)
class RaceOptions:
    """The ``options`` of the method ``race``."""

    seconds: float = 20.0
    """For all of it; a burst that is under way is waited for, as long again at the most."""
    blocks: int = 9
    launches: int = 10
    """In each block, and no more than there are sets."""
    sets: int = samples.SETS
    cold: bool = True
    """Evict the L2 cache before each launch."""

    def within(self, launch: Launch) -> Launch:
        """A contestant's, which is given up for hung after the time of the whole race."""
        return replace(launch, deadline_s=min(launch.deadline_s, max(self.seconds, LEAST_SECONDS)))


def race(session: Session, params: Json, emit: Emit) -> Json:
    """The judge's method ``race``.

    Params: ``target``, ``runners`` (by name, the likeliest first), ``options`` (fields of `RaceOptions`).
    The result has ``blocks`` (name -> microseconds of each launch of each block), ``failed`` and ``left_out``
    (name -> reason: its own fault, or nobody's).
    """
    device = session.task.reference.device
    require_device(device)
    target = target_of(session.task, params["target"])
    options = RaceOptions(**(params.get("options") or {}))
    launches = {name: Launch.of(runner).on(device) for name, runner in params["runners"].items()}
    rigs = {name: TimedRig(border_of(target), options.within(one)) for name, one in launches.items()}
    return Race(target, rigs, options, emit).run()


class Race:
    """One race; its rigs are closed at the end.

    Args:
        rigs: contestants by name, the likeliest first.
        now: seconds of a clock that never goes back.
    """

    def __init__(
        self,
        target: Target,
        rigs: Mapping[str, TimedRig],
        options: RaceOptions,
        emit: Emit,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.target, self.options = target, options
        self._rigs, self._emit, self._now = dict(rigs), emit, now
        self._begun = now()
        self._times: dict[str, list[list[float]]] = {}
        self._failed: dict[str, str] = {}
        self._left_out: dict[str, str] = {}

    def run(self) -> Json:
        """Start them, time them, and say what became of each."""
        try:
            self._start()
            self._interleave()
        finally:
            for rig in self._rigs.values():
                rig.close()
        return {"blocks": self._times, "failed": self._failed, "left_out": self._left_out}

    def _start(self) -> None:
        """Prepare and warm up as many as time and memory allow: each has memory for all its sets."""
        tensors = drawn(self.target)
        own = self.target.evaluate(tensors, "own")
        room = affordable(self.target, tensors, own, next(iter(self._rigs.values())).device)
        sets = max(1, min(self.options.sets, room // max(1, len(self._rigs))))
        more = others(self.target, tensors, sets - 1)
        for position, (name, rig) in enumerate(self._rigs.items()):
            if position and position * sets >= room:
                self._left_out[name] = NO_MEMORY
            elif self._passed(STARTING):
                self._left_out[name] = NO_TIME
            else:
                self._emit("stage", {"stage": f"warm-up {name}"})
                with _noted(name, self._failed):
                    rig.prepare(tensors, own, sets, more)
                    for _ in range(WARM_UP):
                        self._burst(rig)
                    self._times[name] = []

    def _interleave(self) -> None:
        """Blocks A B B A ..., until time is up."""
        for block in range(self.options.blocks):
            racing = self._racing(block)
            for name in racing if block % 2 == 0 else reversed(racing):
                if self._passed(1.0):
                    self._end()
                    return
                with _noted(name, self._failed):
                    self._times[name].append(self._burst(self._rigs[name]))
                if name in self._failed:
                    del self._times[name]
            self._emit("block", {"block": block})
        self._end()

    def _racing(self, block: int) -> list[str]:
        """Those that are worth another block."""
        if block < SURE or not self._times:
            return list(self._times)
        medians = {name: [median(burst) for burst in found] for name, found in self._times.items()}
        leader = min(median(found) for found in medians.values())
        return [name for name, found in medians.items() if min(found) <= BEHIND * leader]

    def _end(self) -> None:
        for name in [name for name, found in self._times.items() if not found]:
            del self._times[name]
            self._left_out[name] = NO_TIME

    def _burst(self, rig: TimedRig) -> list[float]:
        count = min(self.options.launches, rig.rotations)
        done = rig.burst(count, cold=self.options.cold)
        require_joined(done)
        return launch_times(done, count)

    def _passed(self, share: float) -> bool:
        return self._now() - self._begun > share * self.options.seconds


@contextmanager
def _noted(name: str, failed: dict[str, str]) -> Iterator[None]:
    """Takes down what a contestant did wrong, and lets the others go on."""
    try:
        yield
    except CandidateFault as fault:
        failed[name] = f"{fault.category}: {fault.message}"
    except Unsupported:
        failed[name] = "unsupported: the full size"
