"""How fast is a candidate?  Interleaved blocks against the reference's baselines, on a GPU.

Event times come from inside each process; the judge's own clock around back-to-back bursts, and CUPTI's
record of when the device worked, must agree with the candidate's, and a random set of timed results is
compared with the reference.  What the blocks mean is said elsewhere (`samples`, and ``tools/timing.py`` in
the engine).
"""

import secrets
import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch
from torch import Tensor

from . import conditioning, numerics, samples
from .answers import Done
from .baseline import LOWER, USUAL, kinds_for
from .baselines import BASELINE_SECONDS
from .candidate_fault import CandidateFault, Unsupported
from .channel import Channel
from .checking import FULL, border_of
from .cupti import library
from .device_probe import require_device
from .faults import Fault
from .module_call import ModuleCall
from .project_imports import with_imports
from .rig import Launch
from .session import Emit, Json, Session
from .target import RegionTarget, Target, target_of
from .task import Task
from .timed_inputs import affordable, drawn, others
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
LEAST_SAMPLES = 20
BURST_US = 6000.0
"""For a long burst of long launches."""
LEFT_US, LEFT_SHARE = 200.0, 0.02
"""For how long other streams may work on after a burst: as long as it takes to ask, and some of its time."""
Burst = Callable[[int], list[float]]
"""So many launches; their times in microseconds."""


@dataclass(frozen=True)
class Measurement:
    """The ``options`` of the method ``time``."""

    blocks: int = 12
    launches: int = 10
    """In each block: ``blocks * launches`` samples in all."""
    sets: int = samples.SETS
    """Buffers that the launches rotate through; a block has at most one launch on each."""
    cold: bool = True
    """Evict the L2 cache before each launch."""
    warmup_s: float = 10.0
    """A warm-up that has not become stable ends after this long, and the report says so."""
    baselines: tuple[str, ...] | None = None
    """Of ``baseline.KINDS``; None: those that tell something about the target."""


def time(session: Session, params: Json, emit: Emit) -> Json:
    """The judge's method ``time``.

    Params: ``target``, ``runner``, ``options`` (fields of `Measurement`), ``rivals`` (runners by name: other
    candidates for the same target, timed in the same blocks).  The result has ``category``, ``findings``,
    ``unchecked``, ``notes`` and, when correct, ``blocks`` (name -> microseconds of each launch of each
    block), ``baselines`` (those that ran), ``lower_precision`` (more of them), ``bind_us`` and
    ``environment``.
    """
    launch = Launch.of(params["runner"]).on(session.task.reference.device)
    if not launch.device.startswith("cuda"):
        raise Fault("usage", "only a GPU is timed", advice="emulator verdicts are functional")
    require_device(session.task.reference.device)
    options = Measurement(**(params.get("options") or {}))
    device = session.task.reference.device
    rivals = {name: Launch.of(runner).on(device) for name, runner in (params.get("rivals") or {}).items()}
    race = _Race(session, params["target"], launch, rivals, options, emit)
    try:
        return race.run()
    except CandidateFault as fault:
        return {"category": fault.category, "findings": [fault.as_finding()], "unchecked": [], "notes": []}
    except Unsupported:
        finding = CandidateFault("unsupported", "the full size, when timed").as_finding()
        return {"category": "unsupported", "findings": [finding], "unchecked": [], "notes": []}
    finally:
        race.close()


def warm(session: Session, params: Json, emit: Emit) -> Json:
    """The judge's method ``warm``: start the baselines that ``time`` will want; ``wait``: until they run."""
    if session.task.reference.device.type == "cuda":
        options = Measurement(**(params.get("options") or {}))
        kinds = _kinds(session.task, target_of(session.task, params["target"]), options)
        session.baselines.start(session.task, params["target"], kinds)
        if params.get("wait"):
            emit("stage", {"stage": "baselines", "limit_s": BASELINE_SECONDS})
            session.baselines.wait(params["target"])
    return {}


def rest(session: Session, params: Json, emit: Emit) -> Json:
    """The judge's method ``rest``: baselines that are not ready stop until the next ``warm``."""
    session.baselines.rest()
    return {}


def _kinds(task: Task, target: Target, options: Measurement) -> tuple[str, ...]:
    if options.baselines is not None:
        return tuple(options.baselines)
    if isinstance(target, RegionTarget):  # a subtask's time chooses a kernel; claims are made of programs
        return USUAL
    return kinds_for(task.reference.options, target.operators())


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


def apart(seen_us: float, event_us: float) -> bool:
    """Is there more to a launch than its events say, by another clock?"""
    return seen_us - event_us > max(AGREEMENT * event_us, AGREEMENT_US)


def _long_burst(launch_us: float) -> int:
    return max(4, min(LONG_BURST, int(BURST_US / launch_us)))


class _Race:
    def __init__(
        self,
        session: Session,
        described: Json,
        launch: Launch,
        rivals: Mapping[str, Launch],
        options: Measurement,
        emit: Emit,
    ) -> None:
        self.task, self.described, self.options, self._emit = session.task, described, options, emit
        self.target = target_of(self.task, described)
        self.rig = self._rig(launch)
        self._rivals = {name: self._rig(rival) for name, rival in rivals.items()}
        self._pool = session.baselines
        self._baselines: dict[str, Channel] = {}
        self._host_us: list[float] = []
        """Of each of the candidate's bursts: how long the host was at a launch."""
        self.notes: list[str] = []
        self.unchecked: list[str] = []

    def _rig(self, launch: Launch) -> TimedRig:
        launch = with_imports(launch, self.task.reference)
        module = ModuleCall(self.task) if launch.module else None
        rig = TimedRig(border_of(self.target), launch, module.preface() if module else ())
        rig.arguments = module.arguments(FULL) if module else ""
        return rig

    def run(self) -> Json:
        tensors = drawn(self.target)
        own = self.target.evaluate(tensors, "own")
        sets = self._sets(tensors, own)
        more = others(self.target, tensors, sets - 1)
        # One after the other, by this thread: the kernel ends a runner with the thread that started it.
        bound, *_ = [rig.prepare(tensors, own, sets, more) for rig in (self.rig, *self._rivals.values())]
        if kinds := _kinds(self.task, self.target, self.options):
            self._emit("stage", {"stage": "baselines", "limit_s": BASELINE_SECONDS})
            self._baselines, failures = self._pool.of(self.task, self.described, kinds)
            self.unchecked += failures
        contestants = {"candidate": self._burst_of(self.rig)}
        contestants |= {name: self._burst_of(rig) for name, rig in self._rivals.items()}
        contestants |= {name: self._of(name, channel) for name, channel in self._baselines.items()}
        for name, burst in contestants.items():
            self._warm_up(name, burst)
        times = self._interleaved(contestants)
        launch_us = median(t for block in times["candidate"] for t in block)
        self.notes.append(f"the host is {median(self._host_us):.0f} us at a launch")
        slope_us, event_us = self._clocked(launch_us)
        busy = self._watched(launch_us)
        self._agree(slope_us, event_us, confirmed=busy is not None)
        return {
            "category": "correct",
            "findings": [],
            "unchecked": self.unchecked,
            "notes": self.notes,
            "blocks": times,
            "baselines": [name for name in self._baselines if name not in LOWER],
            "lower_precision": [name for name in self._baselines if name in LOWER],
            "bind_us": bound.event_us if bound.rc == 0 else None,
            "environment": self._environment() | ({} if busy is None else {"device_busy": busy}),
        }

    def close(self) -> None:
        for rig in (self.rig, *self._rivals.values()):
            rig.close()

    def _sets(self, tensors: Sequence[Tensor], own: Sequence[Tensor]) -> int:
        """As many as asked for and as memory allows."""
        device = self.task.reference.device
        count = max(1, min(self.options.sets, affordable(self.target, tensors, own, device)))
        if count < self.options.sets:
            self.notes.append(f"{count} rotating sets instead of {self.options.sets}: device memory")
        return count

    @property
    def _launches(self) -> int:
        """In a block: none of them may know the result of another."""
        return min(self.options.launches, self.rig.rotations)

    @property
    def _blocks(self) -> int:
        return max(self.options.blocks, -(-LEAST_SAMPLES // self._launches))

    def _burst_of(self, rig: TimedRig) -> Burst:
        def burst(count: int) -> list[float]:
            done = rig.burst(count, cold=self.options.cold)
            require_joined(done)
            if rig is self.rig and done.host_us:
                self._host_us.append(median(done.host_us))
            return done.times_us

        return burst

    def _of(self, name: str, channel: Channel) -> Burst:
        def burst(count: int) -> list[float]:
            try:
                return channel.burst(count, cold=self.options.cold).times_us
            except CandidateFault as fault:  # the reference's own process: never held against the candidate
                self._pool.forget(self.described)
                raise Fault("environment", f"the baseline {name} failed", why=fault.message) from fault

        return burst

    def _warm_up(self, name: str, burst: Burst) -> None:
        """Bursts until their medians agree."""
        self._emit("stage", {"stage": f"warm-up {name}"})
        medians: list[float] = []
        end = clock.monotonic() + self.options.warmup_s
        while not samples.stable(medians):
            if clock.monotonic() > end:
                self.notes.append(f"{name}: the warm-up did not become stable")
                return
            medians.append(median(burst(self._launches)))

    def _interleaved(self, contestants: Mapping[str, Burst]) -> dict[str, list[list[float]]]:
        """Blocks A B B A ...; after some of the candidate's, one of its results is compared."""
        times: dict[str, list[list[float]]] = {name: [] for name in contestants}
        order = list(contestants)
        for block in range(self._blocks):
            for name in order if block % 2 == 0 else reversed(order):
                found = contestants[name](self._launches)
                if len(found) != self._launches or min(found) <= 0:
                    raise CandidateFault("hack_suspected", f"{name}: times that no clock shows: {found[:3]}")
                times[name].append(found)
                if name == "candidate" and (block == 0 or secrets.randbelow(3) == 0):
                    number = secrets.choice(self.rig.order)
                    self._verify(self.rig.given(number), self.rig.delivered(number))
            self._emit("block", {"block": block, "median_us": median(times["candidate"][-1])})
        return times

    def _verify(self, tensors: list[Tensor], got: list[Tensor]) -> None:
        if self.target.random:
            return
        own = self.target.evaluate(tensors, "own")
        exact = partial(self.target.evaluate, precision="f64")
        truth = exact(tensors)
        weights = [slot.kind != "activation" for slot in self.target.inputs]
        reduction = self.target.reduction(FULL) or numerics.default_reduction(tensors, weights)
        for result, reference, true in zip(got, own, truth, strict=True):
            compared = numerics.compare(result, reference, true, reduction=reduction)
            if compared.category == "numerics":
                allowed = conditioning.allowance(exact, tensors, truth, reduction, secrets.randbits(31))
                compared = numerics.compare(result, reference, true, reduction=reduction, allowance=allowed)
            if compared.category:
                raise CandidateFault(
                    "hack_suspected",
                    f"right when tested, wrong when timed: {compared.message}",
                    where="a timed launch",
                    detail=compared.detail,
                )

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

    def _environment(self) -> Json:
        properties = torch.cuda.get_device_properties(self.task.reference.device)
        return {
            **self.task.reference.set_flags(),
            "device": properties.name,
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cache": "cold L2" if self.options.cold else "warm L2",
            "l2_bytes": properties.L2_cache_size,
            "blocks": self._blocks,
            "launches_per_block": self._launches,
            "rotating_sets": self.rig.rotations,
        }
