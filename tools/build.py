"""Build a candidate with nvcc: cached, limited, and every way to fail told apart."""

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from stitch_tui.tools import process, ptxas
from stitch_tui.tools.build_cache import BuildCache, Entry, file_digest, key_of
from stitch_tui.tools.compile_slots import compile_slot, total_bytes
from stitch_tui.tools.compiler_faults import compiler_error, raise_if_machine, starved, unexplained
from stitch_tui.tools.diagnostics import findings
from stitch_tui.tools.exports import unexported
from stitch_tui.tools.imports import forbidden_imports
from stitch_tui.tools.nvcc import KEPT, OUTPUT, Recipe, missing, recipe
from stitch_tui.tools.paths import runtime_dir
from stitch_tui.tools.snapshot import STAGED, Snapshot, take
from stitch_tui.tools.toolkit import Toolkit
from stitch_tui.tools.verdict import Build, Category, Finding, KernelFacts

ABI_HEADERS = Path(__file__).parent / "include"
RECORD, LOG = "build.json", "build.log"
FORMAT = "nvcc build 2"
"""Part of every key: change it when what a build directory holds changes."""
LARGEST_FILE = 4 << 30
LEAST_MEMORY = 4 << 30
_LIMITED = 'ulimit -v "$1" 2>/dev/null; ulimit -f "$2" 2>/dev/null; shift 2; exec "$@"'


async def build_cuda(
    source: Path,
    *,
    arch: str,
    toolkit: Toolkit,
    cache: Path,
    timeout: float = 120,
    include: Sequence[Path] = (),
) -> Build:
    """Compile one candidate to a shared library, or say why not in the build's diagnostics.

    The diagnostics' errors come first; their categories are ``build_error``, ``link_error``,
    ``host_timeout`` (nvcc took longer than `timeout`) or ``out_of_memory_host``.  `Build.log` is the path of
    the whole log.

    Args:
        arch: the device's, such as ``sm_90``.
        timeout: seconds for nvcc itself; waiting for another build does not count.
        include: further folders for ``#include``.

    Raises:
        UsageError: the source cannot be read.
        EnvironmentFault: nvcc, a host compiler or disk space is missing, or they do not fit each other.
    """
    toolkit.require_nvcc()
    folders = (source.resolve().parent, *include, ABI_HEADERS)
    snapshot = take(source, folders[1:])
    plan = recipe(snapshot.text, arch, toolkit, folders)
    key = key_of(FORMAT, toolkit.compiler, *_place_free(plan), *snapshot.fingerprint())
    async with BuildCache(cache).entry(key) as entry:
        build = _stored(entry) or await _Job(snapshot, plan, key, timeout).run(entry)
    return _in_words_of(build, source.name)


def _place_free(plan: Recipe) -> list[str]:
    """The command without the folder of the source, which may move."""
    own = str(plan.includes[0])
    return [part for part in plan.command if part != own]


def _stored(entry: Entry) -> Build | None:
    """The finished build, if it is there and whole."""
    if not entry.ready:
        return None
    try:
        build = Build.model_validate_json((entry.path / RECORD).read_bytes())
        intact = file_digest(entry.path / OUTPUT) == build.artifact_sha256
    except (OSError, ValidationError):
        return None
    return _located(build, entry.path).model_copy(update={"cached": True}) if intact else None


def _located(build: Build, folder: Path) -> Build:
    return build.model_copy(update={"artifact": str(folder / OUTPUT), "log": str(folder / LOG)})


def _in_words_of(build: Build, name: str) -> Build:
    """The diagnostics under the source's own name."""
    renamed = tuple(
        finding.model_copy(
            update={
                "message": finding.message.replace(STAGED, name),
                "file": name if finding.file == STAGED else finding.file,
            }
        )
        for finding in build.diagnostics
    )
    return build.model_copy(update={"diagnostics": renamed})


@dataclass(frozen=True)
class _Job:
    """One compilation that has to happen."""

    snapshot: Snapshot
    plan: Recipe
    key: str
    timeout: float

    async def run(self, entry: Entry) -> Build:
        with entry.staging() as folder:
            self.snapshot.write(folder)
            (folder / KEPT).mkdir()
            async with compile_slot(runtime_dir("compile")):
                done = await self._compile(folder)
            log = done.stdout + done.stderr
            build = await self._judge(folder, done, log)
            if not build.ok:
                return build.model_copy(update={"log": str(entry.fail(log))})
            shutil.rmtree(folder / KEPT)
            (folder / LOG).write_text(log, encoding="utf-8")
            (folder / RECORD).write_text(build.model_dump_json(), encoding="utf-8")
            return _located(build, entry.publish(folder))

    async def _compile(self, folder: Path) -> process.Finished:
        """nvcc under a limit on memory for each of its processes, with none of the user's nvcc variables."""
        kib = max(LEAST_MEMORY, total_bytes() // 2) // 1024
        limited = ("sh", "-c", _LIMITED, "sh", str(kib), str(LARGEST_FILE // 512), *self.plan.command)
        host = self.plan.toolkit.host_compiler
        path = f"{host.parent if host else ''}:/usr/local/bin:/usr/bin:/bin"
        env = {"PATH": path, "TMPDIR": str(folder / KEPT), "LANG": "C.UTF-8"}
        return await process.run(limited, timeout=self.timeout, cwd=folder, env=env)

    async def _judge(self, folder: Path, done: process.Finished, log: str) -> Build:
        found = self._findings(folder, done, log)
        artifact = folder / OUTPUT
        ok = done.ok and artifact.is_file()
        if ok:
            toolkit = self.plan.toolkit
            against = await unexported(artifact, toolkit)
            if toolkit.nm:
                against += await forbidden_imports(sorted((folder / KEPT).glob("*.o")), toolkit.nm)
            ok, found = not against, (*against, *found)
        return Build(
            ok=ok,
            device="cuda",
            command=self.plan.command,
            arch=", ".join(sorted(ptxas.built_for(log))) or self.plan.arch,
            source_sha256=hashlib.sha256(self.snapshot.source).hexdigest(),
            artifact_sha256=file_digest(artifact) if ok else "",
            key=self.key,
            compiler=self.plan.toolkit.compiler,
            seconds=done.seconds,
            diagnostics=found,
            kernels=await _kernels(log, self.plan.toolkit),
        )

    def _findings(self, folder: Path, done: process.Finished, log: str) -> tuple[Finding, ...]:
        if done.timed_out:
            return (compiler_error(Category.HOST_TIMEOUT, f"nvcc did not finish within {self.timeout:g} s"),)
        if not done.ok:
            raise_if_machine(log, self.snapshot.text, folder)
            if starved(done, log, self.snapshot.text):
                why = "the compiler ran out of memory on this source"
                return (compiler_error(Category.OUT_OF_MEMORY_HOST, why),)
        found = findings(log, partial(self._local, folder), _ptx(folder))
        if done.ok or any(finding.detail["severity"] == "error" for finding in found):
            return self._advised(found)
        return (unexplained(done, log), *found)

    def _local(self, folder: Path, file: str) -> str:
        path = folder / file
        name = str(path.relative_to(folder)) if path.is_relative_to(folder) else ""
        own = name == STAGED or self.snapshot.folder / name in self.snapshot.headers
        return name if own else ""

    def _advised(self, found: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """A missing header of a library gets the reason beside it."""
        lacking = missing(self.snapshot.text, self.plan.toolkit)
        return tuple(
            f.model_copy(update={"message": f"{f.message}\n{lacking}"})
            if lacking and "No such file" in f.message
            else f
            for f in found
        )


def _ptx(folder: Path) -> str:
    return "\n".join(path.read_text(errors="replace") for path in sorted((folder / KEPT).glob("*.ptx"))[:1])


async def _kernels(log: str, toolkit: Toolkit) -> tuple[KernelFacts, ...]:
    facts = list(ptxas.kernel_facts(log))
    if not facts or toolkit.demangler is None:
        return tuple(facts)
    mangled = [fact.kernel for fact in facts]
    done = await process.run([str(toolkit.demangler)], stdin="\n".join(mangled).encode(), timeout=60)
    names = dict(zip(mangled, done.stdout.splitlines(), strict=False)) if done.ok else {}
    return tuple(ptxas.renamed(fact, names) for fact in facts)
