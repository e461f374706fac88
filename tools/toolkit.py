"""Find what a CUDA build and a profile need on this machine: nvcc, libraries, CUTLASS, NVIDIA's tools.

NVIDIA's wheels hold all of it too (``pip install nvidia-cuda-nvcc nvidia-cuda-cccl``), in two layouts below
``site-packages/nvidia``: one folder for a CUDA major (``cu13``) or one for each package (``cublas``).
"""

import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools import process
from stitch_tui.tools.errors import EnvironmentFault

INSTALL_NVCC = (
    "install the CUDA toolkit, or its wheels in one version: "
    "pip install 'nvidia-cuda-nvcc==13.0.*' 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-crt==13.0.*' "
    "'nvidia-nvvm==13.0.*' 'nvidia-cuda-cccl==13.0.*'"
)
INSTALL_HOST_COMPILER = "install g++ (Debian, Ubuntu: apt install g++), or name one in NVCC_CCBIN"


@dataclass(frozen=True)
class Library:
    """A library that a candidate may link."""

    name: str
    include: Path
    """Folder with its headers."""
    path: Path
    """The shared object itself, with or without a version in its name."""


@dataclass(frozen=True)
class Toolkit:
    """What was found; None where there is nothing.  `require_nvcc` says what to do then."""

    nvcc: Path | None = None
    version: str = ""
    """Of nvcc, such as ``13.0.88``."""
    root: Path | None = None
    """The toolkit that nvcc belongs to."""
    host_compiler: Path | None = None
    host_version: str = ""
    includes: tuple[Path, ...] = ()
    """Further include folders that nvcc does not know by itself (one wheel for each package)."""
    library_folders: tuple[Path, ...] = ()
    """Where the CUDA runtime lies: the nvcc of a wheel looks for it in a folder that wheels do not have."""
    cublas: Library | None = None
    cublas_lt: Library | None = None
    cudnn: Library | None = None
    cutlass: Path | None = None
    """Include folder of CUTLASS and CuTe."""
    nm: Path | None = None
    demangler: Path | None = None
    cuobjdump: Path | None = None
    compute_sanitizer: Path | None = None
    ncu: Path | None = None
    nsys: Path | None = None

    @property
    def compiler(self) -> str:
        """One line for a cache key and a report."""
        return f"nvcc {self.version} with {self.host_version or 'no host compiler'}"

    def require_nvcc(self) -> Path:
        """nvcc's path.

        Raises:
            EnvironmentFault: nvcc or the host compiler that it needs is missing.
        """
        if self.nvcc is None:
            raise EnvironmentFault("nvcc was not found", advice=INSTALL_NVCC)
        if self.host_compiler is None:
            raise EnvironmentFault(
                "nvcc needs a host C++ compiler and there is none", advice=INSTALL_HOST_COMPILER
            )
        return self.nvcc


async def find_toolkit(
    python: str = "", *, environ: Mapping[str, str] = os.environ, system: Path = Path("/")
) -> Toolkit:
    """Everything that is installed; the first nvcc that runs wins.

    Looks on PATH, in CUDA_HOME and CUDA_PATH, below /usr/local and /opt, and in the wheels of stitch's own
    interpreter and of `python`, the reference's.  `system` is where those absolute folders start.
    """
    path = environ.get("PATH", os.defpath)
    sites = [*_own_sites(), *await _sites_of(python)]
    wheels = list(_wheel_roots(sites))
    roots = [*_installed_roots(environ, system), *wheels]
    nvcc, version = await _first_nvcc(_programs("nvcc", path, [root / "bin" for root in roots]))
    own_root = await _root_of(nvcc) if nvcc else None
    parts = _parts(own_root, wheels) if own_root else []
    roots = [*parts[:1], *roots]
    bins = [root / "bin" for root in roots]
    host = _which(environ.get("NVCC_CCBIN") or "g++", path) or _which("c++", path)
    search = [*roots, system / "usr"]
    major = version.partition(".")[0]

    def tool(name: str, *patterns: str) -> Path | None:
        return next(_programs(name, path, [*bins, *_globbed(roots, system, patterns)]), None)

    return Toolkit(
        nvcc=nvcc,
        version=version,
        root=own_root,
        host_compiler=host,
        host_version=await _first_line(host) if host else "",
        includes=tuple(part / "include" for part in parts[1:]),
        library_folders=tuple(p / "lib" for p in parts if (p / "lib/libcudart_static.a").is_file()),
        cublas=_library("cublas", "cublas_v2.h", search, major),
        cublas_lt=_library("cublasLt", "cublasLt.h", search, major),
        cudnn=_library("cudnn", "cudnn.h", search, ""),
        cutlass=_cutlass(sites, environ, system),
        nm=_which("nm", path),
        demangler=tool("cu++filt") or _which("c++filt", path),
        cuobjdump=tool("cuobjdump"),
        compute_sanitizer=tool("compute-sanitizer", "{root}/compute-sanitizer"),
        ncu=tool("ncu", "{root}/nsight-compute-*", "opt/nvidia/nsight-compute/*"),
        nsys=tool("nsys", *_NSYS),
    )


async def include_folders(
    python: str = "", *, environ: Mapping[str, str] = os.environ, system: Path = Path("/")
) -> list[Path]:
    """Folders with CUDA headers, the toolkit that nvcc belongs to first; arguments as for `find_toolkit`."""
    toolkit = await find_toolkit(python, environ=environ, system=system)
    wheels = _wheel_roots([*_own_sites(), *await _sites_of(python)])
    roots = [root for root in (toolkit.root, *_installed_roots(environ, system), *wheels) if root]
    folders = [folder for root in roots for folder in _includes(root)]
    known = [library.include for library in (toolkit.cublas_lt, toolkit.cudnn) if library]
    named = [*folders, *toolkit.includes, *known, *([toolkit.cutlass] if toolkit.cutlass else [])]
    with_headers = [
        folder.resolve() for folder in named if folder.is_dir() and folder != system / "usr/include"
    ]
    return list(dict.fromkeys(with_headers))


_NSYS = (
    "{root}/nsight-systems-*/bin",
    "{root}/nsight-systems-*/target-linux-*",
    "opt/nvidia/nsight-systems/*/bin",
    "opt/nvidia/nsight-systems/*/target-linux-*",
    "{root}/nsight-compute-*/host/target-linux-*",
    "opt/nvidia/nsight-compute/*/host/target-linux-*",
)
"""Nsight Systems' own folders first; Nsight Compute carries a copy that collects."""


def _which(name: str, path: str) -> Path | None:
    found = shutil.which(name, path=path)
    return Path(found) if found else None


def _programs(name: str, path: str, folders: Iterable[Path]) -> Iterator[Path]:
    """The program on PATH, then in each folder."""
    for where in (path, *map(str, folders)):
        if found := _which(name, where):
            yield found


def _globbed(roots: Sequence[Path], system: Path, patterns: Iterable[str]) -> list[Path]:
    """Folders that match, the newest version first."""
    found: list[Path] = []
    for pattern in patterns:
        for root in roots if pattern.startswith("{root}") else [system]:
            matches = root.glob(pattern.removeprefix("{root}/"))
            found += sorted(matches, key=_versions_in, reverse=True)
    return list(dict.fromkeys(found))


def _versions_in(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]


def _installed_roots(environ: Mapping[str, str], system: Path) -> list[Path]:
    named = [Path(value) for name in ("CUDA_HOME", "CUDA_PATH") if (value := environ.get(name))]
    numbered = sorted((system / "usr/local").glob("cuda-*"), key=_versions_in, reverse=True)
    candidates = [*named, system / "usr/local/cuda", *numbered, system / "opt/cuda"]
    return [root for root in candidates if root.is_dir()]


def _own_sites() -> list[Path]:
    return [Path(entry) for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]


async def _sites_of(python: str) -> list[Path]:
    """`sys.path` of another interpreter; nothing when it does not run (its own check says so)."""
    if not python:
        return []
    try:
        done = await process.run([python, "-c", "import json, sys; print(json.dumps(sys.path))"], timeout=30)
        return [Path(entry) for entry in json.loads(done.stdout)] if done.ok else []
    except (OSError, json.JSONDecodeError):
        return []


def _wheel_roots(sites: Iterable[Path]) -> Iterator[Path]:
    """Folders of NVIDIA wheels, the newest CUDA major first, then one for each package."""
    for site in dict.fromkeys(sites):
        parent = site / "nvidia"
        if parent.is_dir():
            yield from sorted(parent.glob("cu[0-9][0-9]"), reverse=True)
            yield from sorted(path for path in parent.iterdir() if (path / "include").is_dir())


async def _first_nvcc(candidates: Iterable[Path]) -> tuple[Path | None, str]:
    for nvcc in candidates:
        text = await _output([str(nvcc), "--version"])
        if match := re.search(r"\bV(\d+\.\d+\.\d+)", text):
            return nvcc, match[1]
    return None, ""


async def _root_of(nvcc: Path) -> Path | None:
    """nvcc may be a link or a script that starts another; a dry run names the real place."""
    match = re.search(
        r"^#\$ TOP=(.+)$", await _output([str(nvcc), "--dryrun", "-c", "none.cu"]), re.MULTILINE
    )
    return Path(match[1].strip()).resolve() if match else None


async def _first_line(program: Path) -> str:
    return (await _output([str(program), "--version"])).partition("\n")[0].strip()


async def _output(argv: Sequence[str]) -> str:
    try:
        done = await process.run(argv, timeout=30)
    except OSError:
        return ""
    return done.stdout + done.stderr


def _parts(root: Path, wheels: Sequence[Path]) -> list[Path]:
    """The toolkit's own folder, and the wheels beside it where each package has a folder."""
    beside = ("cuda_runtime", "cuda_cccl") if root.name == "cuda_nvcc" else ()
    return [root, *(part for name in beside if (part := root.parent / name) in wheels)]


def _library(name: str, header: str, roots: Sequence[Path], major: str) -> Library | None:
    """The first place that has the header and the shared object (of CUDA's own `major`, if given)."""
    for root in roots:
        include = next((folder for folder in _includes(root) if (folder / header).is_file()), None)
        shared = next((path for path in _shared_objects(root, name) if _of_major(path, major)), None)
        if include and shared:
            return Library(name, include, shared)
    return None


def _includes(root: Path) -> list[Path]:
    machine = platform.machine()
    return [root / "include", *root.glob("targets/*-linux/include"), root / f"include/{machine}-linux-gnu"]


def _shared_objects(root: Path, name: str) -> Iterator[Path]:
    machine = platform.machine()
    folders = [root / "lib64", root / "lib", *root.glob("targets/*-linux/lib")]
    for folder in [*folders, root / f"lib/{machine}-linux-gnu"]:
        yield from sorted(folder.glob(f"lib{name}.so*"), key=lambda path: len(path.name))


def _of_major(path: Path, major: str) -> bool:
    version = re.search(r"\.so\.(\d+)", path.resolve().name)
    return not major or not version or version[1] == major


def _cutlass(sites: Iterable[Path], environ: Mapping[str, str], system: Path) -> Path | None:
    named = environ.get("CUTLASS_PATH")
    candidates = [Path(named) / "include", Path(named)] if named else []
    candidates += [site / "cutlass_library/source/include" for site in sites]
    candidates += [system / "usr/local/cutlass/include", system / "usr/include"]
    return next((folder for folder in candidates if (folder / "cutlass/cutlass.h").is_file()), None)
