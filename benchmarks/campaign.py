"""Every figure that needs a GPU, most wanted first, within a given time: one command for a borrowed machine.

``python -m benchmarks.campaign --keep FOLDER [--seconds 540] [--kernelbench CHECKOUT] [STEP ...]`` runs the
steps below, one at a time on each GPU, and begins none that the time left is too short for.  What a step
printed and how it ended stands in FOLDER, with a copy of the results; one that passed at this commit is not
run again, so that the same command on the next machine, with FOLDER there, goes on.  ``--list`` says what
there is.  Steps that write the same file never run side by side.
"""

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import provenance
from stitch_tui.tools.gpu import devices

GRACE_S = 10.0
"""Between SIGTERM and SIGKILL, for a step to write down what it has."""
PYTEST = ("-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider")
OF_KERNELBENCH = ("--kernelbench", "{kernelbench}")
EXAMPLES = (
    "layernorm_gelu", "residual_block", "small_cnn", "gru_steps",
    "vit_block", "unet_stage", "attention_block", "gated_mlp",
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One benchmark or test run."""

    name: str
    seconds: float
    """What it takes on an H200 and its host; with less left it is not begun."""
    command: tuple[str, ...]
    """Arguments of Python, in the checkout's root; ``{kernelbench}`` and ``{keep}`` stand for the folders."""
    writes: str = ""
    """Its file in ``benchmarks/results``."""

    @property
    def limit_s(self) -> float:
        """After this it is stopped."""
        return 1.5 * self.seconds + 30.0


def _example(name: str) -> Step:
    settings = ("--iterations", "3", "--seconds", "190", "--set", "device.profile=false")
    command = ("benchmarks/examples.py", name, *settings, "--events", "{keep}/events")
    return Step(f"example-{name}", 160.0, command, "examples")


def _power(part: int) -> Step:
    command = ("benchmarks/timing_power.py", "--seconds", "165", "--runs", "60", "--more")
    return Step(f"timing-power-{part}", 175.0, command, "timing_power")


STEPS = (
    Step("smoke", 45.0, ("benchmarks/gpu_smoke.py",)),
    Step(
        "bundles",
        60.0,
        (*PYTEST, "tests/tools/bundle/test_on_a_gpu.py", "tests/tools/verification/test_arena.py"),
    ),
    Step("selftest", 100.0, ("benchmarks/selftest.py", "--device", "cuda"), "selftest"),
    *(_example(name) for name in EXAMPLES[:3]),
    _power(1),
    Step("steering", 120.0, (*PYTEST, "tests/agents/engine/test_steered_in_a_terminal.py")),
    Step("profiles", 230.0, ("benchmarks/profiles.py",), "profiles"),
    *(_example(name) for name in EXAMPLES[3:]),
    _power(2),
    Step("session", 200.0, ("benchmarks/profiled_session.py",), "profiled_session"),
    Step("feedback", 130.0, ("benchmarks/feedback.py",), "feedback"),
    Step(
        "hacks",
        200.0,
        (
            *("-m", "benchmarks.hacks", "--device", "cuda", "--seconds", "300", "--every", "3"),
            *("--kernelbench", "{kernelbench}/src"),
        ),
        "hacks",
    ),
    Step("experts", 120.0, (*PYTEST, "tests/agents/engine/test_recorded_experts.py")),
    _power(3),
    Step("sanitizer", 100.0, ("benchmarks/gpu_sanitizer.py", "--logs", "{keep}/sanitizer"), "gpu_sanitizer"),
    Step("adversarial", 60.0, ("-m", "benchmarks.adversarial", *OF_KERNELBENCH), "adversarial"),
    _power(4),
    Step("diseases", 200.0, ("benchmarks/diseases.py", "--record", "{keep}/diseases"), "diseases"),
    Step("verdict", 150.0, ("benchmarks/edit_to_verdict.py", *OF_KERNELBENCH), "edit_to_verdict"),
    Step(
        "kernelbench",
        400.0,
        (
            *("benchmarks/kernelbench_tasks.py", *OF_KERNELBENCH, "--out", "{keep}/kernelbench"),
            *("--device", "cuda", "--iterations", "2", "--timeout", "150", "--budget", "380"),
        ),
        "kernelbench",
    ),
)
"""In the order of how much hangs on them."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="STEP", help="default: all")
    parser.add_argument("--keep", type=Path, help="the folder of logs, records and copies of results")
    parser.add_argument("--seconds", type=float, default=540.0, help="for all of it")
    parser.add_argument(
        "--kernelbench", type=Path, help="a checkout; steps that need one are left out without"
    )
    parser.add_argument("--list", action="store_true", help="print the steps and stop")
    options = parser.parse_args()
    steps = tuple(step for step in STEPS if not options.names or step.name in options.names)
    if unknown := {*options.names} - {step.name for step in STEPS}:
        parser.error(f"no such step: {', '.join(sorted(unknown))}; --list names them")
    if options.list:
        print("\n".join(f"{step.seconds:5.0f} s  {step.name}" for step in steps))
        return 0
    if not options.keep:
        parser.error("--keep FOLDER says where logs and records go")
    gpus = [device.uuid for device in devices()]
    if not gpus:
        parser.error("no NVIDIA GPU is visible here")
    campaign = Campaign(steps, options.keep, options.seconds, options.kernelbench)
    asyncio.run(campaign.run(gpus))
    return 0 if all(row["passed"] for row in campaign.rows.values()) else 1


def next_step(
    steps: Sequence[Step], settled: Collection[str], running: Collection[Step], left_s: float
) -> Step | None:
    """The most wanted step that may begin now; None when none may."""
    busy = {step.writes for step in running if step.writes}
    waiting = (step for step in steps if step.name not in settled and step not in running)
    return next((step for step in waiting if step.writes not in busy and step.seconds <= left_s), None)


class Campaign:
    """The steps of one machine's GPUs, and what became of each."""

    def __init__(self, steps: Sequence[Step], keep: Path, seconds: float, kernelbench: Path | None) -> None:
        self._steps, self._keep, self._ends = steps, keep.resolve(), time.monotonic() + seconds
        self._places = {"keep": str(self._keep)}
        if kernelbench:
            self._places["kernelbench"] = str(kernelbench.resolve())
        self._record = self._keep / "campaign.json"
        self._running: list[Step] = []
        self._changed = asyncio.Condition()
        (self._keep / "logs").mkdir(parents=True, exist_ok=True)
        self.rows: dict[str, dict[str, Any]] = {}
        """Step -> commit, passed, exit code, seconds; of earlier runs too."""
        if self._record.exists():
            self.rows = json.loads(self._record.read_text())
        done = {
            name for name, row in self.rows.items() if row["passed"] and row["commit"] == provenance.commit()
        }
        self._settled = done | {step.name for step in steps if self._lacks(step)}

    async def run(self, gpus: Sequence[str]) -> None:
        """All that can be done in time, on these GPUs' UUIDs.

        Each GPU's steps have caches and a runtime folder of their own, as on machines of their own.
        """
        async with asyncio.TaskGroup() as lanes:
            for gpu in gpus:
                lanes.create_task(self._lane(gpu))

    async def _lane(self, gpu: str) -> None:
        with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
            environment = self._environment(gpu, Path(folder))
            while step := await self._taken():
                try:
                    self._tell(step, await self._done(step, environment))
                finally:
                    async with self._changed:
                        self._running.remove(step)
                        self._settled.add(step.name)
                        self._changed.notify_all()

    def _tell(self, step: Step, row: dict[str, Any]) -> None:
        self.rows[step.name] = row
        self._record.write_text(json.dumps(self.rows, indent=1) + "\n")
        shutil.copytree(provenance.RESULTS, self._keep / "results", dirs_exist_ok=True)
        state = "passed" if row["passed"] else f"failed with {row['exit_code']}"
        print(f"{step.name}: {state} in {row['seconds']:.0f} s", flush=True)

    async def _taken(self) -> Step | None:
        """The next step for a lane; waits while what is left must not run beside what runs."""
        async with self._changed:
            while True:
                left = self._ends - time.monotonic()
                if step := next_step(self._steps, self._settled, self._running, left):
                    self._running.append(step)
                    return step
                if not next_step(self._steps, self._settled, [], left) or not self._running:
                    return None
                await self._changed.wait()

    async def _done(self, step: Step, environment: Mapping[str, str]) -> dict[str, Any]:
        command = [word.format_map(self._places) for word in step.command]
        log, started = self._keep / "logs" / f"{step.name}.log", time.monotonic()
        with log.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *command,
                cwd=provenance.ROOT,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
            limit = min(step.limit_s, self._ends - started - GRACE_S)
            try:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), limit)
            finally:
                await stopped(process)
        return {
            "commit": provenance.commit(),
            "passed": process.returncode == 0,
            "exit_code": process.returncode,
            "seconds": round(time.monotonic() - started, 1),
        }

    def _environment(self, gpu: str, folder: Path) -> dict[str, str]:
        places = {f"XDG_{kind.upper()}_HOME": folder / kind for kind in ("cache", "state", "config")}
        places["XDG_RUNTIME_DIR"] = folder / "run"
        for place in places.values():
            place.mkdir(mode=0o700)
        path = os.pathsep.join(filter(None, (str(provenance.ROOT), os.environ.get("PYTHONPATH"))))
        own = {"CUDA_VISIBLE_DEVICES": gpu, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
        commit = {"BENCHMARK_COMMIT": provenance.commit()}
        return {**os.environ, **own, **commit, **{name: str(place) for name, place in places.items()}}

    def _lacks(self, step: Step) -> bool:
        return "kernelbench" not in self._places and any("{kernelbench}" in word for word in step.command)


async def stopped(process: asyncio.subprocess.Process) -> None:
    """End a step and all that it started and left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_S)
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


if __name__ == "__main__":
    sys.exit(main())
