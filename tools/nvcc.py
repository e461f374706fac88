"""The command line that turns one candidate into a shared library: target, flags, libraries."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools.snapshot import STAGED
from stitch_tui.tools.toolkit import Library, Toolkit

OUTPUT = "candidate.so"
KEPT = "kept"
"""Folder of nvcc's intermediate files: PTX, by which an error in inline assembly is traced to its line."""
FLAGS = ("-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-lineinfo", "-Xptxas", "-v")
CHECKED_LINK = ("-Xlinker", "-z", "-Xlinker", "defs")
"""A shared library may leave symbols open; a candidate may not: nobody would supply them."""

_SPECIFIC = re.compile(
    r"\bwgmma\b|\bsetmaxnreg\b|\btcgen05\b|\bcp\.async\.bulk\b|\bcp_async_bulk|\bCUtensorMap\b|[<\"](?:cutlass|cute)/"
)
"""Instructions of one architecture alone, asked for with an ``a`` suffix: ``sm_90a``."""
_HEADERS = {
    "cublas": re.compile(r"#\s*include\s*[<\"]cublas(?:_v2|_api|XT)?\.h"),
    "cublas_lt": re.compile(r"#\s*include\s*[<\"]cublasLt\.h"),
    "cudnn": re.compile(r"#\s*include\s*[<\"]cudnn[\w]*\.h"),
}
_CUTLASS = re.compile(r"#\s*include\s*[<\"](?:cutlass|cute)/")


def target_arch(text: str, arch: str) -> str:
    """`arch`, with the suffix ``a`` where the source needs it and the architecture (9.0 and later) has it."""
    return f"{arch}a" if re.fullmatch(r"sm_(90|1\d\d)", arch) and _SPECIFIC.search(text) else arch


def linked(text: str, toolkit: Toolkit) -> tuple[Library, ...]:
    """The libraries whose headers the source includes, as far as they are installed."""
    found = (getattr(toolkit, name) for name, header in _HEADERS.items() if header.search(text))
    return tuple(library for library in found if library is not None)


def missing(text: str, toolkit: Toolkit) -> str:
    """Libraries that the source includes and this machine lacks, as a sentence for the Coder; or empty."""
    lacking = [
        name.replace("_lt", "Lt")
        for name, header in _HEADERS.items()
        if header.search(text) and getattr(toolkit, name) is None
    ]
    if _CUTLASS.search(text) and toolkit.cutlass is None:
        lacking.append("CUTLASS")
    return f"{', '.join(lacking)}: not installed on this machine, write without it" if lacking else ""


@dataclass(frozen=True)
class Recipe:
    """One build, decided: everything but the folder it happens in."""

    toolkit: Toolkit
    arch: str
    includes: tuple[Path, ...]
    libraries: tuple[Library, ...]

    @property
    def command(self) -> tuple[str, ...]:
        """nvcc's arguments, run in the folder that holds the source as `STAGED`."""
        virtual = self.arch.replace("sm_", "compute_")
        return (
            str(self.toolkit.require_nvcc()),
            *FLAGS,
            *("-gencode", f"arch={virtual},code={self.arch}"),
            *("-ccbin", str(self.toolkit.host_compiler)),
            *("--keep", "--keep-dir", KEPT),
            *(part for folder in self.includes for part in ("-I", str(folder))),
            *self._link,
            *("-o", OUTPUT, STAGED),
        )

    @property
    def _link(self) -> tuple[str, ...]:
        homes = dict.fromkeys(library.path.parent for library in self.libraries)
        search = dict.fromkeys((*self.toolkit.library_folders, *homes))
        return (
            *(part for folder in search for part in ("-L", str(folder))),
            *(f"-l:{library.path.name}" for library in self.libraries),
            # in quotes for the shell through which nvcc calls the linker: spaces and commas survive
            *(part for folder in homes for part in ("-Xlinker", f'"-rpath={folder}"')),
            *CHECKED_LINK,
        )


def recipe(text: str, arch: str, toolkit: Toolkit, include: Sequence[Path]) -> Recipe:
    """Decide how a source with that text is built for `arch`."""
    libraries = linked(text, toolkit)
    cutlass = [toolkit.cutlass] if toolkit.cutlass and _CUTLASS.search(text) else []
    folders = [*include, *cutlass, *toolkit.includes, *(library.include for library in libraries)]
    default = toolkit.root / "include" if toolkit.root else None
    return Recipe(
        toolkit=toolkit,
        arch=target_arch(text, arch),
        includes=tuple(folder for folder in dict.fromkeys(folders) if folder != default),
        libraries=libraries,
    )
