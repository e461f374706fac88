"""Build a candidate for the CPU and run it: the emulator as the engine and the judge see it."""

import asyncio
import hashlib
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stitch_tui.tools.build_cache import BuildCache, Entry, file_digest, key_of
from stitch_tui.tools.emulator.diagnostics import linker_errors
from stitch_tui.tools.emulator.findings import located
from stitch_tui.tools.emulator.front_end import (
    Compiler,
    Deadline,
    Objects,
    Refused,
    Runtime,
    require_room,
)
from stitch_tui.tools.emulator.ptx_front_end import PtxFrontEnd
from stitch_tui.tools.emulator.source_front_end import PRELUDE, SourceFrontEnd
from stitch_tui.tools.emulator.sources import Sources, read_sources
from stitch_tui.tools.emulator.toolchain import (
    ABI,
    HEADERS,
    HERE,
    RUNTIME,
    FrontEnd,
    Mode,
    Toolchain,
    environment,
    examine,
    find_compiler,
)
from stitch_tui.tools.errors import EnvironmentFault, UsageError
from stitch_tui.tools.imports import forbidden_imports
from stitch_tui.tools.process import run
from stitch_tui.tools.verdict import Build, Category, Finding

RUNTIME_S = 300.0
"""Limit on compiling the runtime itself, once for each mode: 5 s of CPU time on an idle machine."""
DEVICE = "emulator"
EXECUTABLE, RECORD = "candidate", "build.json"
"""Files of a candidate's cache entry."""
SEAL = "runtime.sha256"
"""Of a runtime's entry: a digest of each other file."""


class Emulator:
    """Builds candidates into runner executables and explains what those report.

    Args:
        cache: a folder of our own for builds; safe to share between processes.
        cxx: the C++ compiler, a name or a path; the first of g++, clang++, c++ on PATH when None.

    Raises:
        EnvironmentFault: no C++ compiler is found; says what to install.
    """

    def __init__(self, cache: Path, cxx: str | None = None) -> None:
        self.compiler = find_compiler(cxx)
        self.nvcc = shutil.which("nvcc")
        self.cache = BuildCache(cache)
        self._tools: Toolchain | None = None
        self._ptx: PtxFrontEnd | None = None

    async def build(
        self, source: Path, mode: Mode, *, front_end: FrontEnd | str = "auto", timeout: float = 120.0
    ) -> Build:
        """Build a candidate; one that does not build comes back as ``ok=False`` with its diagnostics.

        Args:
            front_end: ``source``, ``ptx`` (needs nvcc), or ``auto``: source first, then ptx if nvcc is there.
            timeout: seconds for the candidate's own compilation, by each front end that is tried.

        Raises:
            UsageError: the file cannot be read.
            EnvironmentFault: the compiler does not work, or ``ptx`` is asked for without nvcc.
        """
        try:
            sources = read_sources(source)
        except OSError as fault:
            raise UsageError(
                "the candidate cannot be read", where=str(source), why=fault.strerror or ""
            ) from None
        started = time.monotonic()
        builds: list[Build] = []
        for compiler in await self._front_ends(front_end):
            builds.append(await self._build(compiler, sources, mode, timeout))
            if builds[-1].ok:
                break
        return _most_telling(builds).model_copy(update={"seconds": time.monotonic() - started})

    async def builds(self, source: Path, *, timeout: float = 120.0) -> tuple[Build, Build]:
        """The watched build and the fast one, side by side; neither goes on after the other's fault."""
        both = [asyncio.create_task(self.build(source, m, timeout=timeout)) for m in (Mode.CHECK, Mode.FAST)]
        try:
            watched, fast = await asyncio.gather(*both)
        finally:
            for build in both:
                build.cancel()
            await asyncio.gather(*both, return_exceptions=True)
        return watched, fast

    def runner_argv(self, build: Build) -> list[str]:
        """The runner's command line; whoever starts it appends the descriptor of its socket."""
        return [build.artifact]

    def runner_env(self, *, order: int = 0, lazy: bool = True, threads: int = 1) -> dict[str, str]:
        """The runner's whole environment.

        Args:
            order: of a block's threads: 0 up, 1 down, above that the seed of a shuffle.
            lazy: streams run as late as they may, newest first; otherwise at once.
            threads: OS threads that share a launch's blocks in fast mode.
        """
        return {
            "STITCH_ORDER": str(order),
            "STITCH_LAZY": str(int(lazy)),
            "STITCH_THREADS": str(threads),
            "LC_ALL": "C",
        }

    async def locate(self, build: Build, raw: Sequence[Mapping[str, Any]]) -> list[Finding]:
        """The runner's raw findings with ``.cu`` file and line; kernel, block and thread in ``where``."""
        return await located(Path(build.artifact), raw)

    async def _toolchain(self) -> Toolchain:
        if self._tools is None:
            self._tools = await examine(self.compiler)
        return self._tools

    async def _front_ends(self, wanted: FrontEnd | str) -> Sequence[Compiler]:
        tools = await self._toolchain()
        source: Compiler = SourceFrontEnd(tools)
        if wanted == FrontEnd.SOURCE or (wanted == "auto" and not self.nvcc):
            return [source]
        if not self.nvcc:
            raise EnvironmentFault("the ptx front end needs nvcc", advice="use the source front end")
        if self._ptx is None:
            self._ptx = await PtxFrontEnd.found(tools, self.nvcc)
        return [self._ptx] if wanted == FrontEnd.PTX else [source, self._ptx]

    async def _build(self, compiler: Compiler, sources: Sources, mode: Mode, timeout: float) -> Build:
        key = key_of(compiler.kind, mode, compiler.identity(mode), _contents(HERE, ABI), sources.sha256)
        runtime = await self._runtime(compiler.kind, mode)
        async with self.cache.entry(key) as entry:
            if stored := _stored(entry):
                return stored
            plain = Build(
                ok=False,
                device=DEVICE,
                arch=f"{compiler.kind} {mode}",
                source_sha256=hashlib.sha256(sources.texts[sources.main].encode()).hexdigest(),
                key=key,
                compiler=(await self._toolchain()).version,
            )
            with entry.staging() as folder:
                deadline = Deadline.after(timeout)
                try:
                    objects = await compiler.compile(sources, mode, folder, runtime, deadline)
                    await _require_harmless(objects, folder)
                    await self._link(objects, runtime, folder, deadline)
                except Refused as refused:
                    return plain.model_copy(update={"diagnostics": refused.findings, "log": refused.log})
                return _published(plain, objects, folder, entry)

    async def _link(self, objects: Objects, runtime: Runtime, folder: Path, deadline: Deadline) -> None:
        """The runtime goes first: its globals must exist before the candidate's constructors run."""
        argv = [self.compiler, str(runtime.object), *(path.name for path in objects.paths)]
        argv += ["-no-pie", "-pthread", "-o", EXECUTABLE]
        done = await run(argv, timeout=deadline.left, cwd=folder, env=environment())
        require_room(done, folder)
        if not done.ok:
            said = linker_errors(done.stderr)
            other = Finding(category=Category.LINK_ERROR, message="the linker failed or took too long")
            raise Refused(said or (other,), done.stderr)

    async def _runtime(self, front_end: FrontEnd, mode: Mode) -> Runtime:
        """The emulator's own object file and parsed headers for this mode, compiled once."""
        tools = await self._toolchain()
        flags = tools.runtime_flags(mode, front_end)
        parsed = tools.candidate_flags(mode) if front_end is FrontEnd.SOURCE and not tools.clang else []
        key = key_of("runtime", tools.version, *flags, *parsed, _contents(RUNTIME, HEADERS, ABI))
        async with self.cache.entry(key) as entry:
            made = Runtime(entry.path)
            if not _sealed(made):
                with entry.staging() as folder:
                    new = Runtime(folder)
                    new.prelude.write_text("".join(f'#include "{name}"\n' for name in PRELUDE))
                    await self._compile_own(flags, RUNTIME / "runtime.cpp", new.object)
                    if parsed:
                        await self._compile_own([*parsed, "-x", "c++-header"], new.prelude, new.parsed)
                    (folder / SEAL).write_text(_digests(new), encoding="ascii")
                    entry.publish(folder)
            return made

    async def _compile_own(self, flags: Sequence[str], source: Path, made: Path) -> None:
        """Compile a part of the emulator: where that fails, the compiler is at fault."""
        argv = [self.compiler, *flags, "-c", str(source), "-o", made.name]
        done = await run(argv, timeout=RUNTIME_S, cwd=made.parent, env=environment())
        require_room(done, made.parent)
        if not done.ok:
            errors = (line for line in done.stderr.splitlines() if "error" in line)
            raise EnvironmentFault(
                "the emulator's runtime does not compile",
                where=self.compiler,
                why=next(errors, "it took too long"),
                advice="set PATH so that a newer g++ or clang++ comes first",
            )


def _stored(entry: Entry) -> Build | None:
    """The finished build, unless somebody deleted or changed a part of it: then it is made anew."""
    try:
        build = Build.model_validate_json((entry.path / RECORD).read_bytes())
    except (OSError, ValueError):
        return None
    artifact = entry.path / EXECUTABLE
    if not build.artifact_sha256 or file_digest(artifact) != build.artifact_sha256:
        return None
    return build.model_copy(update={"cached": True, "artifact": str(artifact)})


def _sealed(made: Runtime) -> bool:
    """Is the runtime the one that was written down when it was made?"""
    seal = made.folder / SEAL
    return seal.is_file() and seal.read_text(encoding="ascii", errors="replace") == _digests(made)


def _digests(made: Runtime) -> str:
    """A line for each file; an empty one for the parsed headers where the compiler has none."""
    return "\n".join(file_digest(path) for path in (made.object, made.prelude, made.parsed))


async def _require_harmless(objects: Objects, folder: Path) -> None:
    """Raise `Refused` for what the candidate's objects call; unasked where there is no nm."""
    if (nm := shutil.which("nm")) and (
        found := await forbidden_imports([folder / path.name for path in objects.paths], Path(nm))
    ):
        raise Refused(found)


def _published(plain: Build, objects: Objects, folder: Path, entry: Entry) -> Build:
    for path in objects.paths:
        path.unlink()
    facts = {
        "ok": True,
        "artifact": str(entry.path / EXECUTABLE),
        "command": objects.command,
        "artifact_sha256": file_digest(folder / EXECUTABLE),
    }
    build = plain.model_copy(update=facts)
    (folder / RECORD).write_text(build.model_dump_json(), encoding="utf-8")
    entry.publish(folder)
    return build


def _contents(*folders: Path) -> str:
    """A key over every file of these folders: the emulator itself is part of every build's key."""
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    own = sorted(path for path in files if "__pycache__" not in path.parts)
    return key_of(*(part for path in own for part in (path.name, path.read_bytes())))


def _most_telling(builds: Sequence[Build]) -> Build:
    """The build that worked; else nvcc's word on errors, the source front end's on what is unsupported."""
    if builds[-1].ok or len(builds) == 1:
        return builds[-1]
    source, ptx = builds
    unsupported = any(finding.category is Category.UNSUPPORTED for finding in source.diagnostics)
    return source if unsupported else ptx
