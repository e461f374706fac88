"""Baseline processes, kept warm between timings: compiling one takes longer than all measurements."""

import contextlib
import json
import os
import secrets
import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from .arena import HostArena
from .candidate_fault import CandidateFault
from .channel import Channel
from .faults import Fault

if TYPE_CHECKING:
    from .session import Json
    from .task import Task

BOOT = Path(__file__).parent / "boot.py"
BASELINE_SECONDS = 600.0
"""For one baseline to load and compile."""
KEPT_TARGETS = 2
"""What is at work, and what comes next."""


class Baselines:
    """The reference's processes by target and kind; each draws its own inputs once."""

    def __init__(self) -> None:
        self._targets: OrderedDict[str, dict[str, Channel]] = OrderedDict()
        self._ready: dict[Channel, CandidateFault | None] = {}
        """Those that were waited for, and what kept them from running."""
        self._arena = HostArena(1 << 16)

    def start(self, task: "Task", target: "Json", kinds: Sequence[str]) -> dict[str, Channel]:
        """Start the baselines of a target that do not run yet, all at once, without waiting for them."""
        key = json.dumps(target, sort_keys=True)
        channels = self._targets.setdefault(key, {})
        self._targets.move_to_end(key)
        while len(self._targets) > KEPT_TARGETS:
            self._end(self._targets.popitem(last=False)[1])
        for kind in kinds:
            if kind not in channels:
                channels[kind] = self._started(task, target, kind)
            channels[kind].go_on()
        return channels

    def rest(self) -> None:
        """Stop those that do not run yet: what they compile they try out on the GPU."""
        for channels in self._targets.values():
            for channel in channels.values():
                if channel not in self._ready:
                    channel.rest()

    def wait(self, target: "Json") -> None:
        """Until each baseline of a target runs, or will not: `of` says so."""
        for channel in self._targets.get(json.dumps(target, sort_keys=True), {}).values():
            channel.go_on()
            with contextlib.suppress(CandidateFault):
                self._wait_for(channel)

    def of(self, task: "Task", target: "Json", kinds: Sequence[str]) -> tuple[dict[str, Channel], list[str]]:
        """The running baselines of a target, and what kept the others from running.

        Raises:
            Fault: none runs.
        """
        channels, failures = self.start(task, target, kinds), []
        for kind in kinds:
            try:
                self._wait_for(channels[kind])
            except CandidateFault as fault:
                failures.append(f"baseline {kind}: {fault.message}")
                del self._ready[channels.pop(kind)]
        if not channels:
            raise Fault("environment", "no baseline runs", why="; ".join(failures))
        return {kind: channels[kind] for kind in kinds if kind in channels}, failures

    def forget(self, target: "Json") -> None:
        """End a target's baselines, after one of them failed."""
        self._end(self._targets.pop(json.dumps(target, sort_keys=True), {}))

    def close(self) -> None:
        """End them all."""
        self._end(*self._targets.values())
        self._targets.clear()
        self._arena.close()

    def _wait_for(self, channel: Channel) -> None:
        if channel not in self._ready:
            try:
                channel.greet()
                self._ready[channel] = None
            except CandidateFault as fault:
                self._ready[channel] = fault
        if known := self._ready[channel]:
            raise known

    def _started(self, task: "Task", target: "Json", kind: str) -> Channel:
        options = asdict(task.reference.options) | {"project": str(task.reference.options.project.resolve())}
        described = {"options": options, "target": target, "seed": secrets.randbits(31), "kind": kind}
        return Channel(
            [sys.executable, str(BOOT), "baseline"],
            arena=self._arena.announce(),
            preface=[f"baseline {json.dumps(described)}"],
            env=dict(os.environ),
            deadline_s=BASELINE_SECONDS,
            start_s=BASELINE_SECONDS,
            wait=False,
        )

    def _end(self, *targets: dict[str, Channel]) -> None:
        """All of them at once: each waits for the GPU to give up what it holds."""
        channels = [channel for target in targets for channel in target.values()]
        for channel in channels:
            channel.kill()
        for channel in channels:
            self._ready.pop(channel, None)
            channel.close(patience_s=0)
