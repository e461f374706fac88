"""The judge's end of the runner protocol: one process for one candidate, confined, timed, never trusted."""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .abi import BAD_CALL, CUDA_ERROR, NOT_EXPORTED, OK, UNSUPPORTED_SHAPE, Call
from .answers import Done, done_of, finding_of, is_category, reported_fault, times_of, watched_of
from .candidate_fault import CUDA_CATEGORIES, CandidateFault, Unsupported
from .containment import Family, Limits
from .isolation import Isolation
from .kernel_cache import KernelCache
from .runner_end import ended_because
from .spawn import spawned

SCRATCH = "_STITCH_SCRATCH"
"""Names the folder of temporary folders, which is removed however this process ends."""
START_SECONDS = 180.0
"""For a runner's own start: interpreter, CUDA context, torch where it needs it."""
OUTPUT_KEPT = 4000
"""Characters of a candidate's output that are shown."""
WATCH_S = 0.2
"""How often a candidate that computes is looked at: memory, processes, files."""
_LINE_LIMIT = 1 << 20
_FINDING_LIMIT = 200


class Channel:
    """A running candidate.

    Args:
        argv: the runner's command; the descriptor's number is appended.
        load: what it must load, empty when the candidate is linked in.
        env: additions to a scrubbed environment.
        preface: lines between the arena and the load, for runners that need to know more.
        descriptors: those that the runner inherits, beside its socket.
        isolation: how to confine it; None for a process of the judge's own.
        cache: what it builds is kept there for the candidate's next runner; None: it goes with this one.
        deadline_s: longest time for one call.
        start_s: longest time until it is ready.
        wait: until it is ready; without, `greet` does so later.

    Raises:
        CandidateFault: the runner cannot be started or the candidate fails while it is loaded.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        arena: str,
        load: str = "",
        preface: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
        isolation: Isolation | None = None,
        cache: KernelCache | None = None,
        deadline_s: float = 30.0,
        start_s: float = START_SECONDS,
        wait: bool = True,
    ) -> None:
        self.deadline_s, self._start_s = deadline_s, start_s
        self.protections = ["own session", "scrubbed environment", "file size limit"]
        self._scratch = Path(tempfile.mkdtemp(prefix="stitch-run-", dir=os.environ.get(SCRATCH)))
        self._output = (self._scratch / "output").open("w+b")
        self._work = self._scratch / "work"
        self._work.mkdir()
        self._pending = b""
        self._cache, self._idle = cache, False
        folders = [self._work]
        if cache:
            cache.enter()
            folders.append(cache.folder)
        Family.prepare()
        self._process, self._socket, active = spawned(
            argv,
            self._work,
            self._output,
            env=env or {},
            descriptors=descriptors,
            isolation=isolation,
            cache=cache.folder if cache else None,
        )
        self.protections += active
        self._family = Family(self._process.pid, folders, Limits.now())
        try:
            self._send("\n".join(["hello 1", arena, *preface, *([f"load {load}"] if load else []), ""]))
        except CandidateFault:
            self.close()
            raise
        if wait:
            self.greet()

    @property
    def pid(self) -> int:
        return self._process.pid

    def rest(self) -> None:
        """Stop its processes until `go_on`, wherever they are; they leave the GPU to others meanwhile."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let stopped processes go on."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End its processes; only `close` waits until they are gone, on a GPU for a second."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def greet(self) -> None:
        """Wait until the runner is ready; it is closed when it will not be.

        Raises:
            CandidateFault: it does not start, or the candidate fails while it is loaded.
        """
        try:
            self._require_ready(self._line(time.monotonic() + self._start_s, "while it starts"))
            self._idle = True
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _require_ready(line: str) -> None:
        words = line.split()
        if words[:1] == ["error"] and words[1:] and is_category(words[1]):
            raise CandidateFault(words[1], " ".join(words[2:]))
        if words[:2] != ["ready", "1"]:
            raise CandidateFault("environment", f"the runner speaks another protocol: {' '.join(words)[:80]}")

    def tell(self, line: str) -> None:
        """Send a line that is not answered: another arena, other arguments."""
        self._send(line + "\n")

    def call(self, verb: str, call: Call) -> Done:
        """Run one verb of the candidate.

        Raises:
            Unsupported: it does not handle these extents.
            CandidateFault: every other way of not returning properly.
        """
        done = self.request(f"call {{nonce}} {verb}", [*call.lines(), "go"], f"in stitch_{verb}")
        return self._judged(verb, done)

    def define(self, index: int, call: Call) -> Done:
        """Store a description as number `index` of the sets that bursts rotate through."""
        return self._judged(
            "run", self.request(f"define {{nonce}} {index}", [*call.lines(), "go"], "in define")
        )

    def burst(self, count: int, *, cold: bool, order: Sequence[int] = ()) -> Done:
        """`count` launches over the defined sets, an event around each; cold: L2 evicted in between.

        Args:
            order: which set each launch takes; empty: one after the other, again and again.
        """
        words = ("cold" if cold else "warm", *map(str, order))
        head = f"burst {{nonce}} {count} {' '.join(words)}"
        return self._judged("run", self.request(head, [], "in a timed burst"))

    def watch(self, count: int, library: str) -> Done:
        """A warm burst under CUPTI, the library at that path."""
        head = f"watch {{nonce}} {count} {library.replace('{', '{{').replace('}', '}}')}"
        return self._judged("run", self.request(head, [], "in a watched burst"))

    def request(self, head: str, body: Sequence[str], where: str) -> Done:
        """Send `head`, with its nonce, and `body`; wait for the acknowledgement with that nonce."""
        nonce = secrets.token_hex(8)
        started, self._idle = time.monotonic(), False
        self._send("\n".join([head.format(nonce=nonce), *body, ""]), where)
        findings: list[dict[str, Any]] = []
        times: dict[str, list[float]] = {}
        watched: dict[str, Any] = {}
        while True:
            kind, _, rest = self._line(started + self.deadline_s, where, findings).partition(" ")
            if kind == "finding":
                findings.append(finding_of(rest))
            elif kind in ("times", "host"):
                times[kind] = times_of(rest, nonce)
            elif kind == "busy":
                watched = watched_of(rest, nonce)
            elif kind == "done":
                wall_us = (time.monotonic() - started) * 1e6
                self._idle = True
                return replace(done_of(rest, nonce, wall_us, findings[:_FINDING_LIMIT], times), **watched)
            else:
                raise CandidateFault(
                    "hack_suspected", f"text on the runner's private channel that no runner writes {where}"
                )

    def _judged(self, verb: str, done: Done) -> Done:
        if fault := reported_fault(done.findings, f"in stitch_{verb}"):
            raise fault
        if done.rc == UNSUPPORTED_SHAPE:
            raise Unsupported
        if done.cuda_error:
            category = CUDA_CATEGORIES.get(done.cuda_error, "launch_error")
            raise CandidateFault(category, f"CUDA error {done.cuda_error} after stitch_{verb}")
        if done.rc not in (OK, NOT_EXPORTED) or (done.rc == NOT_EXPORTED and verb == "run"):
            meaning = {
                CUDA_ERROR: "STITCH_CUDA_ERROR",
                BAD_CALL: "STITCH_BAD_CALL",
                NOT_EXPORTED: "no such symbol",
            }
            raise CandidateFault("launch_error", f"stitch_{verb} returned {meaning.get(done.rc, done.rc)}")
        return done

    def _send(self, text: str, where: str = "while it starts") -> None:
        self._socket.settimeout(self.deadline_s)
        try:
            self._socket.sendall(text.encode())
        except TimeoutError:
            raise self._hung(where) from None
        except OSError:
            raise self._ended(where, []) from None

    def _line(self, deadline: float, where: str, findings: list[dict[str, Any]] | None = None) -> str:
        while b"\n" not in self._pending:
            self._socket.settimeout(max(0.001, min(WATCH_S, deadline - time.monotonic())))
            try:
                chunk = self._socket.recv(1 << 16)
            except TimeoutError:
                self._watch(deadline, where)
                continue
            except OSError:
                chunk = b""
            if not chunk:
                raise self._ended(where, findings or [])
            self._pending += chunk
            if len(self._pending) > _LINE_LIMIT:
                raise CandidateFault(
                    "hack_suspected", f"a flood of text on the runner's private channel {where}"
                )
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode(errors="replace")

    def _watch(self, deadline: float, where: str) -> None:
        """No answer yet: raise when the time is up, or when the candidate holds too much."""
        if time.monotonic() >= deadline:
            raise self._hung(where)
        if excess := self._family.excess():
            self._kill()
            raise CandidateFault(excess.category, f"{excess.what} {where}", where=where)

    def _hung(self, where: str) -> CandidateFault:
        self._kill()
        return CandidateFault("hang", f"no answer within {self.deadline_s:g} s {where}", where=where)

    def _ended(self, where: str, findings: list[dict[str, Any]]) -> CandidateFault:
        """Why the runner is gone."""
        try:
            code = self._process.wait(2)
        except subprocess.TimeoutExpired:
            code = None
        return ended_because(code, where, findings, self.output())

    def output(self) -> str:
        """What the candidate printed, the first characters.  Data, never an instruction."""
        with (self._scratch / "output").open("rb") as file:
            return file.read(OUTPUT_KEPT).decode(errors="replace")

    def _kill(self) -> None:
        self._family.end()
        self._process.wait()

    def close(self, patience_s: float = 2.0) -> str:
        """Let the runner go, kill what is left of its group, remove its folder; returns what it printed.

        Args:
            patience_s: how long it may take to go of itself.
        """
        with contextlib.suppress(OSError):
            self._socket.settimeout(0.5)
            self._socket.sendall(b"quit\n")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_s)
        self._kill()
        if self._cache and self._idle:
            self._cache.leave()
        self._socket.close()
        self._output.close()
        printed = self.output()
        shutil.rmtree(self._scratch, ignore_errors=True)
        return printed
