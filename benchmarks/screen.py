"""How fluid the screen stays: first paint, a flood of streamed code, a long journal; and the naive ways.

``python benchmarks/screen.py [SECONDS]`` writes ``benchmarks/results/screen.json``.  A stall is the longest
time for which the screen's event loop did not come round, beyond the pause that was asked for.  Each figure
is of a process of its own, so that none has the memory of another; modules are compiled, as pip leaves them.
"""

import asyncio
import json
import os
import pty
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import provenance

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import replay
from textual.app import App, ComposeResult
from textual.widgets import RichLog, TextArea

from stitch_tui import garbage
from stitch_tui.agents import events
from stitch_tui.agents.commands import Reply
from stitch_tui.agents.settings import Settings
from stitch_tui.agents.state import Candidate, Plan, Subtask
from stitch_tui.app import StitchApp
from stitch_tui.link import JournalFeed, Make
from stitch_tui.screens.session import SessionScreen
from stitch_tui.tools.graph import Region
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.verdict import Category, Flag, Verdict
from stitch_tui.view.board import Board
from stitch_tui.view.drafts import Drafts

SIZE = (120, 40)
BEAT_S = 0.005
EMPTY = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("Nothing")
Empty().run()
"""
SHOWN = {
    "view": (("-m", "stitch_tui", "view"), b"Planner"),
    "start": (("-m", "stitch_tui"), b"Begin or go on"),
    "an app of Textual's with one word": (("-c", EMPTY), b"Nothing"),
}
"""What is started, and how its first picture is known; the last is what the first two are held against."""
PAINTS = 7
DELTAS_A_SECOND = 2000
LINES_A_DELTA = 2
NAIVE_LINES = {"RichLog": 20_000, "TextArea": 300}
LINE = "    acc[i][j] += tile_a[threadIdx.y][k + {n} % 8] * tile_b[k][threadIdx.x];  // step {n}\n"


class Heartbeat:
    """Longest stall of the loop, CPU share and memory while it beats."""

    async def beat(self) -> None:
        self.longest_ms, self._began = 0.0, (time.process_time(), time.monotonic())
        while True:
            before = time.monotonic()
            await asyncio.sleep(BEAT_S)
            self.longest_ms = max(self.longest_ms, (time.monotonic() - before - BEAT_S) * 1e3)

    def figures(self) -> dict[str, float]:
        cpu, wall = time.process_time() - self._began[0], time.monotonic() - self._began[1]
        return {
            "longest_stall_ms": round(self.longest_ms, 1),
            "cpu_share": round(cpu / wall, 3),
            "wall_s": round(wall, 2),
            "memory_mb": memory_mb(),
        }


def memory_mb() -> float:
    status = Path("/proc/self/status").read_text()
    kb = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return round(int(kb) / 1024, 1)


async def measured(work: Callable[[], Awaitable[Any]]) -> dict[str, float]:
    heart = Heartbeat()
    beating = asyncio.create_task(heart.beat())
    await asyncio.sleep(0)
    await work()
    beating.cancel()
    return heart.figures()


class Idle:
    """A feed that gives nothing by itself."""

    trouble = ""

    async def run(self, board: Board) -> None:
        await asyncio.Event().wait()

    async def send(self, make: Make, generation: int) -> Reply:
        raise NotImplementedError


def opening() -> list[events.Event]:
    """A plan, a kept version, and a second attempt about to be written."""
    region = Region(nodes=("linear",), inputs=("x",), outputs=("linear",))
    verdict = Verdict(category=Category.CORRECT, flags=(Flag.FUNCTIONAL,), device="emulator", summary="ok")
    source = "".join(LINE.format(n=n) for n in range(2000))
    candidate = Candidate(source=source, strategy="tiled")
    about: dict[str, Any] = {"iteration": 1, "subtask": "s01"}
    return [
        events.SessionStarted(reference="m.py", device="emulator"),
        events.PlanProposed(plan=Plan(subtasks=(Subtask(id="s01", title="linear", region=region),))),
        events.SubtaskStarted(subtask="s01", title="linear"),
        events.IterationStarted(**about, attempt=1, kind=Kind.DRAFT),
        events.CodeWritten(**about, candidate=candidate, path="s01.cu"),
        events.VerdictReached(**about, verdict=verdict, outcome=Outcome.KEPT),
    ]


async def streaming(seconds: float) -> dict[str, float]:
    """Deltas at `DELTAS_A_SECOND` for so long."""
    board = Board()
    app = StitchApp(SessionScreen(board, Idle(), Path.cwd(), Drafts(None)), Path.cwd(), Settings())
    async with app.run_test(size=SIZE) as pilot:
        for event in opening():
            board.add(event)
        await pilot.pause(0.5)
        before = memory_mb()
        given = 0

        async def flood() -> None:
            nonlocal given
            began = time.monotonic()
            while (elapsed := time.monotonic() - began) < seconds:
                while given < elapsed * DELTAS_A_SECOND:
                    text = "".join(LINE.format(n=given * LINES_A_DELTA + n) for n in range(LINES_A_DELTA))
                    board.add(events.CoderDelta(subtask="s01", text=text))
                    given += 1
                await asyncio.sleep(0.01)

        figures = await measured(flood)
        figures |= {"lines": given * LINES_A_DELTA, "memory_before_mb": before}
    return figures


async def journal(count: int) -> dict[str, float]:
    """A journal of `count` events from its file to the last picture."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        replay.write(path, count)
        board = Board()
        app = StitchApp(
            SessionScreen(board, JournalFeed(path), Path.cwd(), Drafts(None)), Path.cwd(), Settings()
        )
        async with app.run_test(size=SIZE):

            async def read() -> None:
                while board.seq < count:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)

            return await measured(read)


class Naive(App[None]):
    """The ways that come to mind first."""

    def compose(self) -> ComposeResult:
        yield RichLog()
        yield TextArea.code_editor("")


async def naive(kind: str, lines: int) -> dict[str, float]:
    """One line at a time into a widget of Textual's, as fast as it takes them."""
    app = Naive()
    async with app.run_test(size=SIZE):
        log, area = app.query_one(RichLog), app.query_one(TextArea)

        async def write() -> None:
            for n in range(lines):
                if kind == "RichLog":
                    log.write(LINE.format(n=n).rstrip())
                else:
                    area.insert(LINE.format(n=n), area.document.end)
                await asyncio.sleep(0)

        return await measured(write) | {"lines": lines}


def first_paint(words: Sequence[str], sign: bytes) -> float:
    """Seconds from the start of a program in a terminal to the first picture that has `sign` in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ".stitch" / "sessions" / "long" / "events.jsonl"
        path.parent.mkdir(parents=True)
        replay.write(path, 50)
        with in_terminal(folder, *words) as (screen, began):
            seen = b""
            while sign not in seen:
                if select.select([screen], [], [], 20)[0]:
                    seen += os.read(screen, 65536)
            return round(time.monotonic() - began, 3)


def paints() -> dict[str, Any]:
    """`PAINTS` of each program, in turn, after one that leaves compiled modules and a warm disk."""
    times: dict[str, list[float]] = {name: [] for name in SHOWN}
    for round_ in range(PAINTS + 1):
        for name, (words, sign) in SHOWN.items():
            taken = first_paint(words, sign)
            if round_:
                times[name].append(taken)
    return {name: {"median": statistics.median(all), "all": sorted(all)} for name, all in times.items()}


@contextmanager
def in_terminal(folder: str, *words: str) -> Iterator[tuple[int, float]]:
    ours, theirs = pty.openpty()
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *words],
        cwd=folder, env=environment(), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        yield ours, began
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(ours)


def environment() -> dict[str, str]:
    """A terminal's, for a stitch whose modules are compiled."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    cache = Path(tempfile.gettempdir()) / f"stitch-bytecode-{os.getuid()}"
    return ours | {
        "PYTHONPATH": str(provenance.ROOT),
        "PYTHONPYCACHEPREFIX": str(cache),
        "TERM": "xterm-256color",
    }


def alone(what: str, *words: object) -> dict[str, float]:
    """The figures of one measurement, made in a new process."""
    command = [sys.executable, __file__, "--alone", what, *map(str, words)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment())
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def measure(what: str, *words: str) -> dict[str, float]:
    """One measurement in this process, as the commands that show a screen are set up."""
    garbage.settle()
    if what == "stream":
        return asyncio.run(streaming(float(words[0])))
    if what == "journal":
        return asyncio.run(journal(int(words[0])))
    return asyncio.run(naive(words[0], int(words[1])))


def main() -> None:
    if sys.argv[1:2] == ["--alone"]:
        print(json.dumps(measure(*sys.argv[2:])))
        return
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    began_at = os.getloadavg()[0]
    result = {
        "first_paint_s": paints(),
        "stream": alone("stream", seconds),
        "journal_5000": alone("journal", 5000),
        "journal_100000": alone("journal", 100_000),
        "naive": {kind: alone("naive", kind, lines) for kind, lines in NAIVE_LINES.items()},
    }
    about = {
        "commit": provenance.commit(),
        "machine": provenance.processor(),
        "versions": provenance.versions("textual"),
        "load": {"before": began_at, "after": os.getloadavg()[0]},
        "deltas_a_second": DELTAS_A_SECOND,
        "lines_a_delta": LINES_A_DELTA,
    }
    provenance.write("screen", about | result)


if __name__ == "__main__":
    main()
