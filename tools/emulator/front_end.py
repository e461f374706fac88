"""What a front end does for the build: turn sources into objects, or say why not."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from stitch_tui.tools.emulator.diagnostics import compiler_errors
from stitch_tui.tools.emulator.sources import Sources
from stitch_tui.tools.emulator.toolchain import FrontEnd, Mode, environment
from stitch_tui.tools.errors import EnvironmentFault
from stitch_tui.tools.process import Finished, run
from stitch_tui.tools.verdict import Category, Finding

_NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded|Read-only file system")


class Refused(Exception):
    """The candidate cannot be built; carries the located reasons."""

    def __init__(self, findings: Sequence[Finding], log: str = "") -> None:
        super().__init__(f"{len(findings)} findings")
        self.findings, self.log = tuple(findings), log


@dataclass(frozen=True)
class Deadline:
    """One time limit for all steps of a build."""

    seconds: float
    ends: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        return cls(seconds, time.monotonic() + seconds)

    @property
    def left(self) -> float:
        return max(0.001, self.ends - time.monotonic())


@dataclass(frozen=True)
class Runtime:
    """What every candidate of a front end and mode shares, compiled once; in the folder of the cache."""

    folder: Path

    @property
    def object(self) -> Path:
        """The emulator itself."""
        return self.folder / "runtime.o"

    @property
    def prelude(self) -> Path:
        """The headers that nvcc includes by itself; with g++ the parsed form lies beside it."""
        return self.folder / "prelude.h"

    @property
    def parsed(self) -> Path:
        return self.folder / "prelude.h.gch"


@dataclass(frozen=True)
class Objects:
    """The compiled candidate, ready to link with the runtime."""

    paths: tuple[Path, ...]
    command: tuple[str, ...]
    """The compile command that a person would want to see."""


class Compiler(Protocol):
    """A front end with its tools."""

    @property
    def kind(self) -> FrontEnd: ...

    def identity(self, mode: Mode) -> str:
        """Versions and flags: the part of the cache key that is not the source."""

    async def compile(
        self, sources: Sources, mode: Mode, folder: Path, runtime: Runtime, deadline: Deadline
    ) -> Objects:
        """Raises `Refused`."""


async def compile_step(argv: Sequence[str], folder: Path, deadline: Deadline) -> Finished:
    """Run one compiler in `folder`.

    Raises:
        Refused: it found errors, or the time was up.
        EnvironmentFault: it could not write.
    """
    done = await run(argv, timeout=deadline.left, cwd=folder, env=environment())
    require_room(done, folder)
    if done.timed_out:
        raise Refused([_too_slow(deadline)])
    if not done.ok:
        raise Refused(compiler_errors(done.stderr) or (_unexplained(done),), done.stderr)
    return done


def require_room(done: Finished, folder: Path) -> None:
    """A disk that is full or read-only is no error in the candidate.

    Raises:
        EnvironmentFault: the compiler or linker said so.
    """
    if done.ok or not (trouble := _NO_ROOM.search(done.stderr)):
        return
    raise EnvironmentFault(
        "the compiler cannot write its files",
        where=str(folder),
        why=trouble[0],
        advice="free some space there and in TMPDIR, or set XDG_CACHE_HOME and TMPDIR to another disk",
    )


def _too_slow(deadline: Deadline) -> Finding:
    return Finding(
        category=Category.BUILD_ERROR, message=f"compiling takes longer than {deadline.seconds:g} s"
    )


def _unexplained(done: Finished) -> Finding:
    said = next((line for line in done.stderr.splitlines() if line.strip()), f"exit status {done.returncode}")
    return Finding(category=Category.BUILD_ERROR, message=f"the compiler failed: {said}")
