"""Real runs on the emulator, killed at random points and taken up again until all is done.

``python tests/agents/engine/kill_runs.py [--kills 200] [--lanes 2] [--seed N] [--warm CACHE]`` prints how
many of what were killed; test_kills.py runs it.  Each lane has a project of its own, adopts every orphan
below it, and looks after each run: is a process left, a lock, a file of the user's that changed?  At the
end of each session journal and branch must tell the same story.
"""

import argparse
import contextlib
import ctypes
import json
import os
import pty
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from engine_projects import Project, made

from stitch_tui.agents import journal
from stitch_tui.tools.locks import try_lock

TINY = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return torch.relu(x) * 2
def get_inputs(): return [torch.randn(4, 16)]
def get_init_inputs(): return []
"""
KINDS = ("engine", "judge", "runner", "compiler", "ui")
RUN_S = 15.0
"""About how long a run takes: the time over which kills of the engine and of the judge are spread."""
EVENTS = 24
"""About how many events it has."""
LIFE_S = {"runner": 0.5, "compiler": 0.8, "ui": 2.0}
"""About how long such a process lives: it is killed within this time of its start."""
START_S = 5.0
"""About how long it takes to the first event; a busy machine is so many times slower in all."""
PATIENCE_S = 120.0
"""Longest time for everything to be gone; generous, since the machine may be busy."""
TICK_S = 0.01
TRIES = 3
"""Of the last run: one cannot begin where importing torch takes minutes, and leaves the session as it was."""
_PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Wish:
    """One process to be killed in a run."""

    kind: str
    nth: int
    """The n-th of its kind that appears; of the engine: the run's n-th event, 0: by the clock."""
    delay_s: float
    seen: set[int] = field(default_factory=set)
    due: float = 0.0
    pid: int = 0


class Lane:
    """Sessions in one project, one after the other.

    Raises:
        AssertionError: something was left, lost or repeated; says what and where.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.project: Project = made(folder, folder / "no recording", folder / "cache")
        (self.project.folder / "tiny.py").write_text(TINY)
        self.before = self.project.user_state()
        self._name = ""
        """The session that runs."""
        self._terminals: list[int] = []
        self.killed: Counter[str] = Counter()
        self.runs = self.sessions = 0
        self.slowest_s = 0.0
        """Until everything was gone after a run."""
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)

    def work(self, kills: int) -> None:
        """Sessions until so many processes were killed."""
        while sum(self.killed.values()) < kills:
            self._session(kills)

    def _session(self, kills: int) -> None:
        self._name, clean = "", True
        for _ in range(self.random.randint(2, 6)):
            assert self.runs < 10 * (kills + 1), "runs end before anything can be killed"
            self._forget_builds()
            before = self.killed.copy()
            self._run(self._wishes())
            clean = clean and not {"runner", "compiler"} & set(self.killed - before)
            if sum(self.killed.values()) >= kills:
                break
        if self._name:
            self._finish(clean=clean)

    def _wishes(self) -> list[Wish]:
        """A viewer, and runners of a run that goes on; or compilers, and what a run cannot do without."""
        chance = self.random
        wishes = [Wish("ui", 1, chance.uniform(0.1, LIFE_S["ui"]))]
        small = "runner" if chance.random() < 0.4 else "compiler"
        wishes += [Wish(small, chance.randint(1, 3), chance.uniform(0, LIFE_S[small])) for _ in range(3)]
        if small == "runner":
            return wishes
        if chance.random() < 0.35:
            wishes.append(Wish("judge", 1, chance.uniform(0, RUN_S)))
        elif chance.random() < 0.6:
            wishes.append(Wish("engine", chance.randint(1, EVENTS), chance.uniform(0, 0.2)))
        else:
            wishes.append(Wish("engine", 0, chance.uniform(0, RUN_S)))
        return wishes

    # one run ------------------------------------------------------------------------------------

    def _run(self, wishes: list[Wish]) -> None:
        """An engine, with some of its processes killed, to its end."""
        self.runs += 1
        words = ["--auto", *(["--resume", self._name] if self._name else ["tiny.py"])]
        words += ["--device", "emulator", self.random.choice(("--detach", "--json"))]
        output = self.project.folder.parent / "output"
        with output.open("wb") as out:
            command = subprocess.Popen(
                [sys.executable, "-m", "stitch_tui", *words],
                cwd=self.project.folder,
                env=self.project.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        known = set(journal.sessions(self.project.folder))
        self._pace = 0.0
        self._began, self._alone_since, self._before = time.monotonic(), time.monotonic(), self._events()
        while tree := self._tree():
            if not self._name:
                self._name = next(iter(set(journal.sessions(self.project.folder)) - known), "")
            for wish in list(wishes):
                if self._granted(wish, tree):
                    wishes.remove(wish)
            command.poll()
            self._require_an_end(tree)
            time.sleep(TICK_S)
        while self._terminals:
            os.close(self._terminals.pop())
        text = output.read_text(errors="replace")
        assert "Traceback" not in text, text
        self._nothing_left()

    def _granted(self, wish: Wish, tree: dict[int, str]) -> bool:
        """Kill what is wished for when its time has come; True when that wish is done with."""
        now, events = time.monotonic(), self._events() - self._before
        if events and not self._pace:
            self._pace = max(1.0, (now - self._began) / START_S)
        if not wish.pid and wish.kind == "ui":
            if events > 0 and "engine" in tree.values():
                wish.pid, wish.due = self._viewer(), now + wish.delay_s * self._pace
            return False
        if not wish.pid:
            alive = [pid for pid, kind in tree.items() if kind == wish.kind]
            wish.seen |= set(alive)
            at_event = wish.kind == "engine" and wish.nth
            if alive and (events if at_event else len(wish.seen)) >= wish.nth:
                wish.pid, wish.due = alive[-1], now + wish.delay_s * (self._pace or 1.0)
        if wish.pid and tree.get(wish.pid) != wish.kind:
            wish.pid, wish.delay_s = 0, wish.delay_s / 2  # it ended before its time: the next one, then
        if not wish.pid or now < wish.due:
            return False
        if _kill(wish.pid):
            self.killed[wish.kind] += 1
            print(f"run {self.runs}, {now - self._began:5.1f} s, event {events:>2}: {wish.kind}", flush=True)
        return True

    def _viewer(self) -> int:
        """Somebody who watches: the screen in a terminal of its own, or lines."""
        ours, theirs = pty.openpty()
        words = self.random.choice(([], ["attach", "--json"]))
        process = subprocess.Popen(
            [sys.executable, "-m", "stitch_tui", *words],
            cwd=self.project.folder,
            env=self.project.environment | {"TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs if not words else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs)
        self.project.running.append(process)  # keeps it from being reaped behind our back
        self._terminals.append(ours)
        return process.pid

    def _events(self) -> int:
        """How many events the session has."""
        path = journal.path_of(self.project.folder, self._name)
        return path.read_bytes().count(b"\n") if self._name else 0

    def _tree(self) -> dict[int, str]:
        """Process ids below this one and what each is; those that have ended are reaped."""
        found: dict[int, str] = {}
        for pid in _children(os.getpid()):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    found |= _described(pid)
        return found

    def _require_an_end(self, tree: dict[int, str]) -> None:
        """Without an engine everything must go soon; with one, the run must end some time."""
        if "engine" in tree.values() or "starter" in tree.values():
            self._alone_since = time.monotonic()
        alone_s = time.monotonic() - self._alone_since
        self.slowest_s = max(self.slowest_s, alone_s)
        if alone_s > PATIENCE_S or time.monotonic() - self._began > 20 * PATIENCE_S:
            left = [f"{pid} {kind} {_command(pid)[:200]}" for pid, kind in tree.items()]
            for pid in tree:
                _kill(pid)
            raise AssertionError(f"processes go on after {alone_s:.0f} s without an engine: {left}")

    # afterwards ---------------------------------------------------------------------------------

    def _nothing_left(self) -> None:
        assert self.project.user_state() == self.before, "a file of the user's has changed"
        root = self.project.folder.parent
        git = [str(path) for path in (self.project.folder / ".git").rglob("*.lock")]
        assert not git, f"git's locks are left: {git}"
        locks = [self.project.folder / ".stitch" / "engine.lock"]
        locks += [*(root / "cache").glob("**/locks/*"), *(root / "run").glob("**/compile/*")]
        for path in filter(Path.exists, locks):
            held = try_lock(path)
            assert held is not None, f"a lock is held by nobody: {path}"
            os.close(held)

    def _finish(self, *, clean: bool) -> None:
        """Take the session up a last time, unharmed, and compare journal and branch.

        Args:
            clean: no candidate was harmed, so all of them must be found correct.
        """
        self.sessions += 1
        name = self._name
        for _ in range(TRIES):
            self._run([])
            session = self.project.session_named(name)
            if session.status != "running":
                break
        commits = self.project.history.log(name)
        assert session.status in ("goal met", *(() if clean else ("goal not met",))), session.reason
        assert [i.commit for i in session.iterations] == [c.sha for c in commits]
        assert [i.number for i in session.iterations] == [c.iteration.iteration for c in commits]
        told = list(journal.read(journal.path_of(self.project.folder, name)))
        # what a later look finds, after a program that failed, is in the journal and not in the old commit
        first = {e.iteration: e.outcome for e in reversed(told) if e.type == "verdict"}
        outcomes = [first.get(i.number, i.outcome) for i in session.iterations]
        assert outcomes == [c.iteration.outcome for c in commits]
        sequence = [event.seq for event in told]
        assert sequence == list(range(1, len(sequence) + 1)), "the journal's numbers have gaps"
        branches = {known.name for known in self.project.history.sessions()}
        journals = set(journal.sessions(self.project.folder))
        assert branches == journals, f"branches without a journal: {branches ^ journals}"

    def _forget_builds(self) -> None:
        """The candidates' builds, so that compilers run again; the emulator's runtime stays."""
        for build in (self.project.folder.parent / "cache").glob("stitch/emulator/builds/*"):
            if not (build / "runtime.o").exists():
                shutil.rmtree(build)


def _kill(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def _children(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):  # it has ended meanwhile
        for path in list(Path(f"/proc/{pid}/task").glob("*/children")):
            yield from map(int, path.read_text().split())


def _described(pid: int) -> dict[int, str]:
    """What a process and those below it are."""
    found = {pid: _kind(pid)}
    for child in _children(pid):
        found |= _described(child)
    return found


def _kind(pid: int) -> str:
    command = _command(pid)
    if " engine" in command or " --auto " in command:
        return "starter" if "--detach" in command else "engine"
    if "boot.py judge" in command:
        return "judge"
    if "module_runner" in command or "/candidate " in command:
        return "runner"
    if any(
        f"{name} " in command.partition(" -")[0] + " " for name in ("cc1plus", "g++", "as", "ld", "collect2")
    ):
        return "compiler"
    if "-m stitch_tui" in command:
        return "ui"
    return "other"


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    parser.add_argument("--folder", type=Path, help="of one lane, which works here")
    parser.add_argument("--warm", type=Path, help="a cache of stitch's that has the emulator's runtime")
    options = parser.parse_args()
    if options.folder:
        if options.warm:
            shutil.copytree(options.warm, options.folder / "cache", symlinks=True)
        lane = Lane(options.folder, options.seed)
        lane.work(options.kills)
        told = {
            "killed": lane.killed,
            "runs": lane.runs,
            "sessions": lane.sessions,
            "slowest_s": lane.slowest_s,
        }
        print(json.dumps(told))
        return 0
    return _lanes(options.kills, options.lanes, options.seed, options.warm)


def _lanes(kills: int, lanes: int, seed: int, warm: Path | None) -> int:
    """All lanes side by side; prints the sum of what they say."""
    began = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="stitch-kills-"))
    print(f"seed {seed}, {lanes} lanes in {root}", flush=True)
    running = []
    for number in range(lanes):
        folder = root / f"lane {number}"
        folder.mkdir()
        share = kills // lanes + (number < kills % lanes)
        argv = [sys.executable, __file__, "--folder", str(folder), "--kills", str(share)]
        argv += ["--warm", str(warm)] if warm else []
        with (root / f"lane {number}.log").open("wb") as log:
            running.append(subprocess.Popen([*argv, "--seed", str(seed + number)], stdout=log, stderr=log))
    codes = [lane.wait() for lane in running]
    total: Counter[str] = Counter()
    for number, code in enumerate(codes):
        log = (root / f"lane {number}.log").read_text()
        if code:
            print(f"lane {number}, seed {seed + number}:\n{log[-4000:]}")
            continue
        told = json.loads(log.splitlines()[-1])
        total.update(told.pop("killed"))
        print(f"lane {number}: {told}")
    parts = ", ".join(f"{total[kind]} {kind}" for kind in KINDS)
    print(f"killed {sum(total.values())}: {parts}; {time.monotonic() - began:.0f} s")
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
