"""The host compiler and its flags: which one, which version, what each mode asks of it."""

import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from stitch_tui.tools.errors import EnvironmentFault
from stitch_tui.tools.process import run

HERE = Path(__file__).resolve().parent
RUNTIME = HERE / "runtime"
HEADERS = HERE / "include"
ABI = HERE.parent / "include"
ARCH = 800
"""``__CUDA_ARCH__`` of the emulated device: an Ampere, whose instructions the emulator knows."""

COMPILERS = ("g++", "clang++", "c++")
ADVICE = "install g++ 9 or later (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++) or clang++"
PROBE_S = 60.0


class Mode(StrEnum):
    """How closely a run is watched."""

    FAST = "fast"
    """No instrumentation: results, deadlocks, bad launches, crashes."""
    CHECK = "check"
    """Every access is checked for bounds, races, initialisation and alignment; about ten times slower."""


class FrontEnd(StrEnum):
    """How a ``.cu`` becomes something the host compiler takes."""

    SOURCE = "source"
    """Our token rewriter and headers: needs a C++17 compiler only."""
    PTX = "ptx"
    """nvcc to PTX, our translator to C++: whatever nvcc compiles, with NVIDIA's own headers."""


UNDEFINED = "signed-integer-overflow,shift,integer-divide-by-zero,bounds,alignment"
COMMON = (
    "-std=c++17",
    "-w",
    "-fno-strict-aliasing",
    "-fno-pie",
    "-ffp-contract=off",
    f"-DSTITCH_EMU_ARCH={ARCH}",
)
X86 = ("-mf16c", "-mfma")


@dataclass(frozen=True)
class Toolchain:
    """A C++17 compiler that has compiled something."""

    path: str
    version: str
    """First line of ``--version``: part of every cache key."""
    clang: bool

    def runtime_flags(self, mode: Mode, front_end: FrontEnd) -> list[str]:
        check = ["-DSTITCH_EMU_CHECK"] if mode is Mode.CHECK else []
        ptx = ["-DSTITCH_PTX"] if front_end is FrontEnd.PTX else []
        return [*self._common(), "-O2", "-g1", *check, *ptx]

    def candidate_flags(self, mode: Mode) -> list[str]:
        """For source: check mode calls our checker at every access (the callbacks of ``check.inc``)."""
        if mode is Mode.FAST:
            return [*self._common(), *self._terse(), "-fwrapv", "-O2", "-g1"]
        checked = [
            "-O1",
            "-g",
            "-fsanitize=thread",
            f"-fsanitize={UNDEFINED}",
            "-DSTITCH_EMU_CHECK",
            "-fno-wrapv",
        ]
        return [*self._common(), *self._terse(), *checked, *self._accesses_only()]

    def translated_flags(self, mode: Mode) -> list[str]:
        """For C++ that came from PTX: it calls the checker itself, and integers wrap as they do in PTX."""
        check = ["-O1", "-DSTITCH_EMU_CHECK"] if mode is Mode.CHECK else ["-O2"]
        return [*self._common(), *self._terse(), "-fwrapv", *check]

    def _common(self) -> list[str]:
        machine = X86 if platform.machine() in ("x86_64", "AMD64") else ()
        return [*COMMON, *machine, f"-I{HEADERS}", f"-I{ABI}"]

    def _terse(self) -> list[str]:
        """One line for each diagnostic."""
        if self.clang:
            return ["-fno-caret-diagnostics", "-fno-color-diagnostics", "-ferror-limit=20"]
        return ["-fno-diagnostics-show-caret", "-fdiagnostics-color=never", "-fmax-errors=20"]

    def _accesses_only(self) -> list[str]:
        """Ask the instrumenter for nothing but loads and stores."""
        if self.clang:
            return ["-mllvm", "-tsan-instrument-func-entry-exit=0", "-mllvm", "-tsan-instrument-atomics=0"]
        return ["--param", "tsan-instrument-func-entry-exit=0"]


def find_compiler(named: str | None) -> str:
    """The path of the C++ compiler: the named one, else the first of `COMPILERS` on PATH.

    Raises:
        EnvironmentFault: there is none; says what to install.
    """
    for name in (named,) if named else COMPILERS:
        if found := shutil.which(name):
            return found
    missing = named or ", ".join(COMPILERS)
    raise EnvironmentFault(
        "no C++17 compiler for the emulator", why=f"not found on PATH: {missing}", advice=ADVICE
    )


async def examine(compiler: str) -> Toolchain:
    """Ask the compiler for its version and have it compile one C++17 line.

    Raises:
        EnvironmentFault: it does not compile C++17.
    """
    said = await run([compiler, "--version"], timeout=PROBE_S, env=environment())
    probe = [compiler, "-std=c++17", "-fsyntax-only", "-x", "c++", "-"]
    program = (
        b"#include <tuple>\nint main() { if constexpr (true) { auto [a] = std::tuple{0}; return a; } }\n"
    )
    tried = await run(probe, timeout=PROBE_S, env=environment(), stdin=program)
    if not said.ok or not tried.ok:
        why = (tried.stderr or said.stderr).strip().splitlines()
        raise EnvironmentFault(
            "the C++ compiler does not compile C++17",
            where=compiler,
            why=why[0] if why else "",
            advice=ADVICE,
        )
    return Toolchain(compiler, said.stdout.splitlines()[0], "clang" in said.stdout.lower())


def environment() -> Mapping[str, str]:
    """What a compiler needs of ours, and English diagnostics."""
    kept = ("PATH", "TMPDIR", "HOME", "CPATH", "LIBRARY_PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH")
    return {name: os.environ[name] for name in kept if name in os.environ} | {"LC_ALL": "C"}
