"""A real engine process whose judge is a recording and whose Verifier follows a script.

``python scripted_engine.py SCRIPT``: the file holds project, recording, resume, settings, and

* ``kill``: ``[event type, n]``: SIGKILL to itself right after the n-th event of that type, or after
  ``prepared``, ``opened``, ``moved``, ``written``: a session's first commit was made, its branch was made,
  a commit was made that the journal does not know yet, and a candidate's file was written;
* ``fill``: ``[event type, n]``: the project's file system is full after the n-th event of that type;
* ``hang``: numbers of iterations whose verification never ends by itself;
* ``patient``: numbers of iterations whose verification ends when the generation has changed;
* ``wrong``: numbers of iterations that are judged wrong, or their categories by number; 0 stands for the
  whole program's;
* ``timed``: speedups, of host programs one after the other over the program before; 1 from then on.  With
  it everything is timed;
* ``races``: what becomes of races, one after the other: ``won`` by the last contestant, ``lost`` with its
  judge, ``hang``.  With it the device is a GPU;
* ``guilty``: a text; programs that hold it in a kernel are judged wrong, if 0 is among ``wrong``.

Engine, gates, journal, git, socket and the built-in Planner and Coder are the real ones.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stitch_tui.agents import engine
from stitch_tui.agents.bench import OpenBench, Workbench
from stitch_tui.agents.engine import Parts, Request
from stitch_tui.agents.events import Event
from stitch_tui.agents.gates import Gates
from stitch_tui.agents.record import Record
from stitch_tui.agents.settings import Settings
from stitch_tui.agents.state import Subtask
from stitch_tui.agents.workspace import Workspace
from stitch_tui.headless import NdjsonPrinter
from stitch_tui.tools.bench import Bench
from stitch_tui.tools.bundle import read_bundle
from stitch_tui.tools.errors import DeviceLost, EnvironmentFault, StitchError
from stitch_tui.tools.gpu import CudaDevice, EmulatorDevice
from stitch_tui.tools.graph import Graph
from stitch_tui.tools.history import History
from stitch_tui.tools.race import Race
from stitch_tui.tools.reference import Exported, ReferenceSummary
from stitch_tui.tools.verdict import Beside, Category, Flag, Ratio, Samples, Timing, Verdict

SCRIPT: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text()) if __name__ == "__main__" else {}
GPU = CudaDevice(
    index=0,
    uuid="GPU-0",
    name="NVIDIA H200",
    capability=(9, 0),
    memory_bytes=141 << 30,
    driver="580.0",
    cuda=(13, 0),
)
SAMPLES = Samples(median_us=10, low_us=9, high_us=11, count=20)


class RecordedJudge:
    """Answers as a real judge once did."""

    alive = True

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers

    async def call(self, method: str, *_: Any, **__: Any) -> Any:
        if method not in self._answers:  # a GPU's trace
            raise EnvironmentFault(f"{method} was not recorded")
        return self._answers[method]


class RecordedWorkbench(Workbench):
    releases = 0

    async def opened(self) -> OpenBench:
        answers = json.loads(Path(SCRIPT["recording"]).read_text())
        judge = RecordedJudge(answers)
        return OpenBench(
            bench=Bench(judge, None),
            judge=judge,  # type: ignore[arg-type]
            device=GPU if "races" in SCRIPT else EmulatorDevice("a test"),
            summary=ReferenceSummary.model_validate(answers["open"]),
            exported=Exported.model_validate(answers["graph"]),
            options={},
        )

    async def release(self) -> None:
        RecordedWorkbench.releases += 1
        with contextlib.suppress(OSError):  # a full disk
            Path(SCRIPT["script"]).with_suffix(".released").write_text(str(RecordedWorkbench.releases))


class ScriptedVerifier:
    def __init__(self, _: Workbench, graph: Graph, record: Record, gates: Gates) -> None:
        self._record, self._gates = record, gates
        self._speedups = iter(SCRIPT.get("timed") or ())
        self._races = iter(SCRIPT.get("races") or ())

    async def verify(self, iteration: int, subtask: Subtask, source: Path) -> Verdict:
        self._gates.check("build")
        await self._work(iteration)
        self._gates.check("run")
        return self._verdict(iteration)

    async def race(self, subtask: Subtask, sources: Mapping[str, str], seconds: float) -> Race:
        assert "races" in SCRIPT, "on the emulator times mean nothing"
        became = next(self._races)
        if became == "hang":
            await asyncio.Event().wait()
        if became == "lost":
            raise DeviceLost("the judge's context on the GPU is gone")
        return Race(times=dict.fromkeys(reversed(sources), SAMPLES), seconds=1.0)

    async def verify_program(self, iteration: int, bundle: Path, *, replaces: Path | None = None) -> Verdict:
        assert (bundle / "model_new.py").is_file()
        await self._work(iteration)
        self._gates.check("run")
        sources = "".join(kernel.source for kernel in read_bundle(bundle).kernels)
        if guilty := SCRIPT.get("guilty"):
            return self._verdict(-1 if guilty not in sources else 0)
        if replaces is not None:
            assert (replaces / "model_new.py").read_text() != (bundle / "model_new.py").read_text()
            return self._verdict(iteration, _timing(next(self._speedups, 1.0)) if "timed" in SCRIPT else None)
        return self._verdict(0 if bundle.name != "part" else -1)

    async def _work(self, iteration: int) -> None:
        generation = self._record.session.generation
        if iteration in SCRIPT.get("hang", ()):
            await asyncio.Event().wait()
        patient = iteration in SCRIPT.get("patient", ())
        while patient and self._record.session.generation == generation:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    def _verdict(self, iteration: int, timing: Timing | None = None) -> Verdict:
        told = SCRIPT.get("wrong", ())
        categories = told if isinstance(told, dict) else dict.fromkeys(map(str, told), Category.NUMERICS)
        wrong = categories.get(str(iteration))
        timing = timing or (_timing() if "timed" in SCRIPT else None)
        return Verdict(
            category=Category(wrong) if wrong else Category.CORRECT,
            flags=() if wrong or timing else (Flag.FUNCTIONAL,),
            device="emulator",
            summary="as scripted",
            timing=None if wrong else timing,
        )


def _timing(over_replaced: float = 0.0) -> Timing:
    """1.2x of eager, and so many times as fast as the program before, if that is asked."""

    def ratio(value: float) -> Ratio:
        return Ratio(value=value, low=value - 0.01, high=value + 0.01)

    beside = Beside(samples=SAMPLES, speedup=ratio(over_replaced)) if over_replaced else None
    return Timing(
        candidate=SAMPLES, baselines={"eager": SAMPLES}, speedups={"eager": ratio(1.2)}, replaced=beside
    )


class Killed:
    """Prints events and dies, or fills the disk, at the scripted one."""

    def __init__(self) -> None:
        self._type, self._left = SCRIPT.get("kill") or SCRIPT.get("fill") or ("", 0)
        self.printer = NdjsonPrinter()
        if self._type in KILLED_AFTER:
            _kill_after(*KILLED_AFTER[self._type], self._left)

    def __call__(self, event: Event) -> None:
        self.printer(event)
        self._left -= event.type == self._type
        if event.type == self._type and self._left == 0:
            fill() if "fill" in SCRIPT else os.kill(os.getpid(), signal.SIGKILL)


def fill() -> None:
    """Leave no room in the project's file system."""
    path = Path(SCRIPT["project"]).with_name("filler")
    with path.open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))


KILLED_AFTER: dict[str, tuple[type, str]] = {
    "prepared": (History, "prepare_session"),
    "opened": (History, "open_branch"),
    "moved": (History, "commit"),
    "written": (Workspace, "write_candidate"),
}


def _kill_after(owner: type, method: str, number: int) -> None:
    called = getattr(owner, method)

    def last(*arguments: Any, **options: Any) -> Any:
        nonlocal number
        result = called(*arguments, **options)
        number -= 1
        if number == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, method, last)


def main() -> int:
    request = Request(
        Path(SCRIPT["project"]),
        Settings.model_validate(SCRIPT["settings"]),
        reference="model.py",
        resume=SCRIPT.get("resume"),
    )
    parts = Parts(verifier=ScriptedVerifier, workbench=RecordedWorkbench)
    emit = Killed()
    try:
        with emit.printer.ending():
            return int(asyncio.run(engine.run(request, emit, parts)))
    except StitchError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)


if __name__ == "__main__":
    sys.exit(main())
