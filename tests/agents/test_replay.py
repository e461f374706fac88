"""A long session's journal is read as a stream: memory holds the state, not the events."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EVENTS = 100_000
LIMIT_MB = 300
"""The state of 12,500 iterations takes about 90 MB with the interpreter; all events at once over 500."""
SCRIPT = """
import json, re, sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/benchmarks"]
from pathlib import Path
import replay
from stitch_tui.agents import events, journal
path = Path(sys.argv[2])
replay.write(path, int(sys.argv[3]))
count = 0
def counted():
    global count
    for event in journal.read(path):
        count += 1
        yield event
session = events.fold(counted())
# not ru_maxrss: a child starts with the value of the process that it was forked from
peak = int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(json.dumps([count, len(session.iterations), session.subtask("s01").best, peak]))
"""


@pytest.mark.slow
def test_a_journal_of_100_000_events_replays_within_a_memory_bound(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", SCRIPT, str(ROOT), str(tmp_path / "events.jsonl"), str(EVENTS)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    count, iterations, best, peak_mb = json.loads(done.stdout)
    assert count == EVENTS
    assert iterations == best == (EVENTS - 2) // 8
    assert peak_mb < LIMIT_MB
