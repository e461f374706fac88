"""Nsight Systems around one process: collect, import where nsys left that to us, export, read.

Nsight Compute carries an nsys that only collects; what it leaves, a ``.qdstrm``, is made a report by
``QdstrmImporter``, which lies beside it and wants elfutils' ``libdw``.  Where the export cannot be read, as
from a version with other tables, ``nsys stats`` is asked, whose scripts know their own version.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools import process
from stitch_tui.tools.profiling.ncu_csv import Unreadable
from stitch_tui.tools.profiling.nsys_database import read_database
from stitch_tui.tools.profiling.nsys_stats import CALLS, DEVICE, read_stats
from stitch_tui.tools.profiling.spans import Spans

SECONDS = 120.0
"""For each step."""
TABLE_BYTES = 64 << 20
"""Of a table of nsys's that is read; a launch is a line of 200 bytes."""
_NEEDS = "it needs"


@dataclass(frozen=True)
class NsysAnswer:
    """What nsys saw; without spans `why` says why not."""

    spans: Spans | None = None
    why: str = ""
    unfit: bool = False
    """It would fail for any process: something of its own is missing."""
    seconds: float = 0.0


async def trace(
    nsys: Path,
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    *,
    timeout: float = SECONDS,
) -> NsysAnswer:
    """What nsys sees of `command` between ``cuProfilerStart`` and ``cuProfilerStop``.

    Never raises for what nsys or the process do.

    Args:
        folder: for its files, which are large.
    """
    report, stream, database = (folder / f"run.{end}" for end in ("nsys-rep", "qdstrm", "sqlite"))
    steps = _Steps(environment, folder, timeout)
    try:
        collect = [
            *(str(nsys), "profile", "--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none"),
            *("--capture-range=cudaProfilerApi", "--capture-range-end=stop"),
            *("--force-overwrite=true", "--output", str(folder / "run"), *command),
        ]
        await steps.run(collect, report, or_else=stream)
        if not report.exists():
            importer = _importer(nsys)
            if importer is None:
                return NsysAnswer(why="this nsys only collects, and there is no QdstrmImporter", unfit=True)
            await steps.run([str(importer), "-i", str(stream), "-o", str(report)], report)
        return NsysAnswer(await _read(nsys, report, database, steps), seconds=steps.seconds)
    except _Unfit as reason:
        return NsysAnswer(why=str(reason), unfit=True, seconds=steps.seconds)
    except Unreadable as reason:
        return NsysAnswer(why=str(reason), seconds=steps.seconds)


async def _read(nsys: Path, report: Path, database: Path, steps: "_Steps") -> Spans:
    """A report through its export, else through nsys's own tables.

    Raises:
        Unreadable: neither can be read; the message is about the export.
    """
    export = ["export", "--type=sqlite", "--force-overwrite=true", f"--output={database}", str(report)]
    try:
        await steps.run([str(nsys), *export], database)
        return read_database(database)
    except Unreadable as reason:
        stats = [str(nsys), "stats", "--force-export=true", "--format", "csv", "--output", "-"]
        try:
            device, calls = [
                await steps.printed([*stats, "--report", name, str(report)]) for name in (DEVICE, CALLS)
            ]
            return read_stats(device, calls)
        except Unreadable:
            raise reason from None


class _Unfit(Unreadable):
    """Nsight Systems itself is not whole."""


class _Steps:
    """Processes one after another; each leaves a file."""

    def __init__(self, environment: Mapping[str, str], folder: Path, timeout: float) -> None:
        self._environment, self._folder, self._timeout = environment, folder, timeout
        self.seconds = 0.0

    async def run(self, argv: Sequence[str], made: Path, or_else: Path | None = None) -> None:
        """Run it to its end.

        Raises:
            Unreadable: neither file is there afterwards; the message says why.
        """
        name = Path(argv[0]).name
        done = await self._done(argv)
        if not made.exists() and not (or_else and or_else.exists()):
            why = _last(done, f"{name} left no {made.suffix}")
            raise (_Unfit if _NEEDS in why else Unreadable)(why)

    async def printed(self, argv: Sequence[str]) -> str:
        """What it prints, as far as it came."""
        return (await self._done(argv)).stdout

    async def _done(self, argv: Sequence[str]) -> process.Finished:
        name = Path(argv[0]).name
        plain = {**self._environment, "LC_ALL": "C"}
        try:
            done = await process.run(
                argv, timeout=self._timeout, env=plain, cwd=self._folder, output_limit=TABLE_BYTES
            )
        except OSError as error:
            raise _Unfit(f"{name} cannot be started: {error.strerror or error}") from error
        self.seconds += done.seconds
        if done.timed_out:
            raise Unreadable(f"{name} took longer than {self._timeout:g} s")
        return done


def _last(done: process.Finished, what: str) -> str:
    """`what`, with the line that says why, if one does."""
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    library = next((line for line in lines if "cannot open shared object" in line), "")
    if found := re.search(r"(lib[\w.+-]+\.so[.\d]*): cannot open", library):
        package = " (Debian, Ubuntu: apt install libdw1)" if "libdw" in found[1] else ""
        return f"{what}: {_NEEDS} {found[1]}{package}"
    return f"{what}: {lines[-1][:200]}" if lines else what


def _importer(nsys: Path) -> Path | None:
    """``QdstrmImporter`` beside a collecting nsys: ``host/linux-desktop-*`` or ``host-linux-*``."""
    real = nsys.resolve()
    places = [
        real.parent,
        *real.parent.parent.glob("linux-desktop-*"),
        *real.parent.parent.glob("host-linux-*"),
    ]
    return next((place / "QdstrmImporter" for place in places if (place / "QdstrmImporter").exists()), None)
