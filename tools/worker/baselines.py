"""Baseline processes, kept warm between timings: compiling one takes longer than all measurements."""

import json
import os
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
"""The subtask at work, and the whole program."""


class Baselines:
    """The reference's processes by target and kind; each draws its own inputs once."""

    def __init__(self) -> None:
        self._targets: OrderedDict[str, dict[str, Channel]] = OrderedDict()
        self._arena = HostArena(1 << 16)

    def of(
        self, task: "Task", target: "Json", seeds: Sequence[int], kinds: Sequence[str]
    ) -> tuple[dict[str, Channel], list[str]]:
        """The running baselines of a target, started together where they are missing, and what failed.

        Raises:
            Fault: none runs.
        """
        key = json.dumps(target, sort_keys=True)
        running = self._targets.setdefault(key, {})
        self._targets.move_to_end(key)
        while len(self._targets) > KEPT_TARGETS:
            self._end(self._targets.popitem(last=False)[1])
        started, failures = {}, []
        for kind in kinds:
            if kind not in running:
                started[kind] = self._started(task, target, seeds, kind)
        for kind, channel in started.items():
            try:
                channel.greet()
                running[kind] = channel
            except CandidateFault as fault:
                failures.append(f"baseline {kind}: {fault.message}")
        if not running:
            raise Fault("environment", "no baseline runs", why="; ".join(failures))
        return {kind: running[kind] for kind in kinds if kind in running}, failures

    def forget(self, target: "Json") -> None:
        """End a target's baselines, after one of them failed."""
        self._end(self._targets.pop(json.dumps(target, sort_keys=True), {}))

    def _started(self, task: "Task", target: "Json", seeds: Sequence[int], kind: str) -> Channel:
        options = asdict(task.reference.options) | {"project": str(task.reference.options.project.resolve())}
        described = {"options": options, "target": target, "seeds": list(seeds), "kind": kind}
        return Channel(
            [sys.executable, str(BOOT), "baseline"],
            arena=self._arena.announce(),
            preface=[f"baseline {json.dumps(described)}"],
            env=dict(os.environ),
            deadline_s=BASELINE_SECONDS,
            start_s=BASELINE_SECONDS,
            wait=False,
        )

    @staticmethod
    def _end(channels: dict[str, Channel]) -> None:
        for channel in channels.values():
            channel.close()
