"""A candidate's launches in blocks between those of the baselines, and the clocks that must agree about them.

Event times come from inside each process; the judge's own clock around back-to-back bursts, and CUPTI's
record of when the device worked, must agree with the candidate's, and a random set of timed results is
compared with the reference.
"""

import secrets
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch
from torch import Tensor

from . import conditioning, numerics, samples
from .baseline import LOWER, USUAL, kinds_for
from .baselines import BASELINE_SECONDS
from .candidate_fault import CandidateFault, Unsupported
from .channel import Channel
from .cross_check import CrossCheck, launch_times, require_joined
from .examination import border_of
from .faults import Fault
from .launch import Launch
from .module_lines import ModuleLines
from .project_imports import with_imports
from .region_target import RegionTarget
from .session import Emit, Json, Session
from .slots import Target
from .target import target_of
from .task import Task
from .timed_inputs import affordable, drawn, others
from .timed_rig import TimedRig
from .variants import FULL

LEAST_SAMPLES = 20
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


def kinds(task: Task, target: Target, options: Measurement) -> tuple[str, ...]:
    """The baselines that tell something about the target, or those that were asked for."""
    if options.baselines is not None:
        return tuple(options.baselines)
    if isinstance(target, RegionTarget):  # a subtask's time chooses a kernel; claims are made of programs
        return USUAL
    return kinds_for(task.reference.options, target.operators())


class Contest:
    """One measurement: rigs, baselines, and what was found out on the way; close it after use."""

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
        self._left_out = set[str]()
        """Rivals that failed."""
        self._pool = session.baselines
        self._baselines: dict[str, Channel] = {}
        self._host_us: list[float] = []
        """Of each of the candidate's bursts: how long the host was at a launch."""
        self.notes: list[str] = []
        self.unchecked: list[str] = []

    def _rig(self, launch: Launch) -> TimedRig:
        launch = with_imports(launch, self.task.reference)
        module = ModuleLines(self.task) if launch.module else None
        rig = TimedRig(border_of(self.target), launch, module.preface() if module else ())
        rig.arguments = module.arguments(FULL) if module else ""
        return rig

    def run(self) -> Json:
        tensors = drawn(self.target)
        own = self.target.evaluate(tensors, "own")
        sets = self._sets(tensors, own)
        more = others(self.target, tensors, sets - 1)
        # One after the other, by this thread: the kernel ends a runner with the thread that started it.
        bound = self.rig.prepare(tensors, own, sets, more)
        for name, rig in self._rivals.items():
            with self._leaving_out(name):
                rig.prepare(tensors, own, sets, more)
        if wanted := kinds(self.task, self.target, self.options):
            self._emit("stage", {"stage": "baselines", "limit_s": BASELINE_SECONDS})
            self._baselines, failures = self._pool.of(self.task, self.described, wanted)
            self.unchecked += failures
        contestants: dict[str, Burst] = {"candidate": self._own_burst}
        contestants |= {
            name: partial(self._rivals_burst, name) for name in self._rivals if name not in self._left_out
        }
        contestants |= {name: partial(self._baselines_burst, name) for name in self._baselines}
        for name, burst in contestants.items():
            with self._leaving_out(name):
                self._warm_up(name, burst)
        times = self._interleaved(contestants)
        launch_us = median(t for block in times["candidate"] for t in block)
        self.notes.append(f"the host is {median(self._host_us):.0f} us at a launch")
        busy = CrossCheck(self.rig, self.notes, self.unchecked).busy_share(launch_us)
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
        """As many as asked for and as memory allows the candidate and its rivals."""
        room = affordable(self.target, tensors, own, self.task.reference.device) // (1 + len(self._rivals))
        count = max(1, min(self.options.sets, room))
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

    def _own_burst(self, count: int) -> list[float]:
        done = self.rig.burst(count, cold=self.options.cold)
        require_joined(done)
        if done.host_us:
            self._host_us.append(median(done.host_us))
        return launch_times(done, count)

    def _rivals_burst(self, name: str, count: int) -> list[float]:
        done = self._rivals[name].burst(count, cold=self.options.cold)
        require_joined(done)
        return launch_times(done, count)

    def _baselines_burst(self, name: str, count: int) -> list[float]:
        try:
            return launch_times(self._baselines[name].burst(count, cold=self.options.cold), count)
        except CandidateFault as fault:  # the reference's own process: never held against the candidate
            self._pool.forget(self.described)
            raise Fault("environment", f"the baseline {name} failed", why=fault.message) from fault

    @contextmanager
    def _leaving_out(self, name: str) -> Iterator[None]:
        """Around what a contestant does: a rival that fails is left out, and that is said."""
        try:
            yield
        except (CandidateFault, Unsupported) as fault:
            if name not in self._rivals:
                raise
            self._left_out.add(name)
            self.unchecked.append(f"timing beside {name}: {fault or 'it does not support the full size'}")

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
                if name in self._left_out:
                    continue
                with self._leaving_out(name):
                    times[name].append(contestants[name](self._launches))
                if name == "candidate" and (block == 0 or secrets.randbelow(3) == 0):
                    number = secrets.choice(self.rig.order)
                    self._verify(self.rig.given(number), self.rig.delivered(number))
            self._emit("block", {"block": block, "median_us": median(times["candidate"][-1])})
        return {name: found for name, found in times.items() if name not in self._left_out}

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
