"""How long a journal of 100,000 events takes to replay, and how much memory.

``python benchmarks/replay.py [EVENTS]`` in a checkout or where stitch is installed writes
``benchmarks/results/replay.json``.
"""

import os
import resource
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import provenance

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from stitch_tui.agents import events, journal
from stitch_tui.agents.state import Candidate, Plan, Subtask
from stitch_tui.tools.graph import Region
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.verdict import Category, Flag, Verdict

_VERDICT = Verdict(category=Category.CORRECT, flags=(Flag.FUNCTIONAL,), device="emulator", summary="correct")
_SOURCE = "__global__ void kernel(const float* x, float* y, long n) { /* ... */ }\n" * 20


def write(path: Path, count: int) -> None:
    """A journal of `count` events: one subtask, an iteration of eight events after the other."""
    region = Region(nodes=("linear",), inputs=("x",), outputs=("linear",))
    plan = Plan(subtasks=(Subtask(id="s01", title="linear", region=region),))
    stamp = {"time": datetime(2026, 1, 1, tzinfo=UTC), "session": "long"}
    with path.open("wb") as out:
        seq = 0
        opening = [events.SessionStarted(reference="m.py", device="emulator"), events.PlanProposed(plan=plan)]
        for event in (*opening, *_iterations((count - len(opening)) // 8)):
            seq += 1
            out.write(event.model_copy(update={**stamp, "seq": seq}).model_dump_json().encode() + b"\n")
        for _ in range(count - seq):
            seq += 1
            last = events.Warned(text="the end", seq=seq, **stamp)  # type: ignore[arg-type]
            out.write(last.model_dump_json().encode() + b"\n")


def _iterations(count: int):  # type: ignore[no-untyped-def]
    candidate = Candidate(source=_SOURCE, strategy="tiled")
    for number in range(1, count + 1):
        about = {"iteration": number, "subtask": "s01"}
        yield events.IterationStarted(**about, attempt=number, kind=Kind.OPTIMISE)
        yield events.CodeWritten(**about, candidate=candidate, path="s01.cu")
        yield events.SubtaskUpdated(subtask="s01", state="checking")
        yield events.SubtaskUpdated(subtask="s01", state="measuring")
        yield events.VerdictReached(**about, verdict=_VERDICT, outcome=Outcome.KEPT)
        yield events.CommitIntended(iteration=number, parent="0" * 40)
        yield events.IterationCommitted(iteration=number, sha=f"{number:040x}", subject="s01: tiled")
        yield events.Routed(subtask="s01", next="optimise", reason="correct; the next may be faster")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        write(path, count)
        size = path.stat().st_size
        started, used = time.perf_counter(), time.process_time()
        session = events.fold(journal.read(path))
        seconds, cpu = time.perf_counter() - started, time.process_time() - used
    report = {
        "benchmark": "replay",
        "commit": provenance.commit(),
        "device": provenance.processor(),
        "versions": provenance.versions("pydantic"),
        "events": count,
        "iterations": len(session.iterations),
        "journal_mb": round(size / 1e6, 1),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "load": round(os.getloadavg()[0], 1),
    }
    provenance.write("replay", report)


if __name__ == "__main__":
    main()
