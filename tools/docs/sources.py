"""What there is to index on this machine: the toolkit's headers, stitch's notes, what a person added."""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from stitch_tui.tools.atomic_write import replace_file, writing
from stitch_tui.tools.docs import headers, pages, pdf
from stitch_tui.tools.docs.chunk import Chunk
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.paths import state_dir

NOTES = Path(__file__).with_name("notes")
HEADER_KINDS = {".h", ".hpp", ".cuh", ".inl"}
PAGE_KINDS = {".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html", ".txt": "text"}
PAGE_KINDS |= {".rst": "text", ".ptx": "text", ".cu": "text", ".pdf": "pdf"}
LARGEST_BYTES = 20_000_000
"""A larger file is no documentation."""
NVIDIA = "NVIDIA's, as installed here; indexed for this user only"
LICENCES = dict.fromkeys(("cub", "thrust", "libcudacxx"), "Apache-2.0 WITH LLVM-exception")
LICENCES["cutlass"] = "BSD-3-Clause"

_LEFT_OUT = re.compile(
    r"(?:^|/)(?:detail|__\w+|std|Openacc|Openmp|nvtx3|nv|host_config|generated_\w+|nvperf\w*|cupti\w*|\w+Typedefs"
    r"|cudaVDPAU\w*|cuda_vdpau\w*|cudaEGL\w*|cuda_egl\w*|cudaGL\w*|cuda_gl\w*|fatbinary\w*|cudart_platform)(?:/|\.h|$)"
)
_LIBRARIES = (
    (r"cublasLt\.h$", "cublaslt"),
    (r"(?:cublas|nvblas)\w*\.h$", "cublas"),
    (r"cudnn\w*\.h$", "cudnn"),
    (r"(?:curand|cufft|cusolver|cusparse|cutensor|nccl|nvrtc|nvJitLink|cufile)", ""),
    (r"(?:^|/)cuda\.h$", "driver"),
    (r"cuda_(?:bf16|fp16|fp8|fp6|fp4)", "half"),
    (r"(?:^|/)(?:crt/)?mma\.h", "wmma"),
    (r"cooperative_groups", "cooperative_groups"),
    (r"(?:^|/)cub/", "cub"),
    (r"(?:^|/)thrust/", "thrust"),
    (r"(?:^|/)cuda/", "libcudacxx"),
    (r"(?:^|/)(?:cutlass|cute)/", "cutlass"),
    (r"crt/|math_|intrinsics|device_\w*functions|atomic", "device"),
    (r"cuda_(?:pipeline|awbarrier|occupancy)", "device"),
)
_VERSIONS = (
    ("cublas", "cublas_api.h", r"#define CUBLAS_VER_(?:MAJOR|MINOR|PATCH) (\d+)"),
    ("cudnn", "cudnn_version.h", r"#define CUDNN_(?:MAJOR|MINOR|PATCHLEVEL) (\d+)"),
    ("cub", "cccl/cub/version.cuh", r"#\s*define CUB_VERSION (\d+)"),
    ("cub", "cub/version.cuh", r"#\s*define CUB_VERSION (\d+)"),
    ("cutlass", "cutlass/version.h", r"#define CUTLASS_(?:MAJOR|MINOR|PATCH) (\d+)"),
)
_CUTLASS_PAGES = ("docs", "media/docs")
"""Beside its include folder."""


@dataclass(frozen=True)
class SourceFile:
    """One file to index."""

    path: Path
    source: str
    """What a person removes it by: ``toolkit``, ``notes``, or the path that was added."""
    library: str
    version: str
    licence: str

    def digest(self) -> str:
        """Changes with the file's bytes and with what is said about it.

        Raises:
            OSError: it cannot be read.
            UsageError: its name is no text, or it is too large.
        """
        _require_text(self.path)
        _require_small(self.path)
        about = "\0".join((self.source, self.library, self.version, self.licence))
        return hashlib.sha256(about.encode() + self.path.read_bytes()).hexdigest()[:32]

    def chunks(self) -> list[Chunk]:
        """The file's chunks, before the limit on their length.

        Raises:
            OSError: it cannot be read.
            UsageError: it is no text, whatever its name says.
            EnvironmentFault: it is a PDF, and no good one, or there is nothing to read it with.
        """
        kind = PAGE_KINDS.get(self.path.suffix.lower(), "")
        if kind == "pdf":
            return list(pdf.chunks(self.path))
        text = self.path.read_text(encoding="utf-8", errors="replace")
        if "\0" in text:
            raise UsageError("it is no text in UTF-8", where=str(self.path), advice="save it as UTF-8")
        if self.path.suffix in HEADER_KINDS or not self.path.suffix:
            bare = self.path.suffix == ".h" and self.library not in ("cub", "thrust", "libcudacxx", "cutlass")
            return list(headers.chunks(text, bare=bare))
        readers: dict[str, Callable[[str, str], Iterator[Chunk]]] = {
            "markdown": pages.markdown,
            "html": pages.html,
            "text": pages.plain,
        }
        return list(readers[kind](text, self.path.stem))


@dataclass(frozen=True)
class Added:
    """A file or folder that a person added, and what it belongs to."""

    path: str
    library: str = ""
    version: str = ""
    url: str = ""
    """Where it was fetched from; empty: it is a person's own."""

    @property
    def source(self) -> str:
        """What it is listed and removed by."""
        return self.url or self.path

    @property
    def licence(self) -> str:
        return f"of {urlsplit(self.url).hostname}; indexed for this user only" if self.url else "yours"


def installed(include_folders: Iterable[Path]) -> list[SourceFile]:
    """Headers of the toolkit and of NVIDIA's wheels, and CUTLASS' pages beside its own.

    Of a library in two folders the first one's are taken.
    """
    found, owners = list[SourceFile](), dict[str, Path]()
    for folder in include_folders:
        for file in (*_headers_of(folder, "toolkit"), *_cutlass_pages(folder)):
            if owners.setdefault(file.library, folder) == folder:
                found.append(file)
    return found


def _cutlass_pages(include: Path) -> Iterator[SourceFile]:
    """The Markdown that comes with CUTLASS, if this is its include folder."""
    if not (include / "cutlass" / "cutlass.h").is_file():
        return
    version = _version(include, "cutlass")
    for folder in _CUTLASS_PAGES:
        for page in _files_below(include.parent / folder):
            if page.suffix == ".md" and _is_small(page):
                yield SourceFile(page, "toolkit", "cutlass", version, LICENCES["cutlass"])


def notes() -> list[SourceFile]:
    """stitch's own notes, on what no header explains."""
    return [SourceFile(path, "notes", "notes", "", "Apache-2.0") for path in sorted(NOTES.glob("*.md"))]


def past_sessions() -> list[SourceFile]:
    """What past sessions of this user's projects came to; their pages are written before a build."""
    found = sorted(sessions_folder().glob("*/*.md"))
    return [SourceFile(path, "sessions", "sessions", "", "yours") for path in found]


def of_added(added: Added) -> list[SourceFile]:
    """The files of a path that a person added; none when it is gone."""
    path = Path(added.path)
    if path.is_file():
        return [_own(path, added)]
    pages_ = [p for p in _files_below(path) if p.suffix.lower() in PAGE_KINDS and _is_small(p)]
    return [*(_own(page, added) for page in pages_), *_headers_of(path, added.source, added)]


def checked(path: Path, library: str, version: str, url: str = "") -> Added:
    """What a person wants to add.

    Args:
        url: where the file was fetched from.

    Raises:
        UsageError: it is not there, too large, or of a kind that cannot be read.
        EnvironmentFault: it is a PDF, and there is nothing to read it with.
    """
    if not os.path.exists(path):
        raise UsageError("there is no such file or folder", where=str(path))
    if path.suffix.lower() == ".pdf":
        pdf.require()
    _require_text(path.resolve())
    added = Added(str(path.resolve()), library, version, url)
    if path.is_file() and path.suffix.lower() not in PAGE_KINDS and path.suffix not in HEADER_KINDS:
        kinds = ", ".join(sorted(HEADER_KINDS | set(PAGE_KINDS)))
        raise UsageError(f"{path.suffix or 'this kind of file'} is not read", where=str(path), advice=kinds)
    if path.is_file():
        _require_small(path)
    if not of_added(added):
        raise UsageError("there is nothing to index in it", where=str(path))
    return added


def added_paths() -> list[Added]:
    """What people added on this machine, oldest first; nothing where the list cannot be read."""
    try:
        found = json.loads(_list_file().read_text(encoding="utf-8"))
        return [Added(**entry) for entry in found]
    except (OSError, ValueError, TypeError):
        return []


def remember(added: Sequence[Added]) -> None:
    """Write the list of added paths down."""
    with writing(_list_file(), "cannot keep the list of added documentation"):
        replace_file(_list_file(), json.dumps([vars(one) for one in added], indent=1).encode())


def sessions_folder() -> Path:
    """A folder for each project, with a page for each of its sessions."""
    return state_dir("docs", "sessions")


def _list_file() -> Path:
    return state_dir("docs") / "added.json"


def _own(path: Path, added: Added) -> SourceFile:
    library = added.library or path.stem.lower()
    return SourceFile(path, added.source, library, added.version, added.licence)


def _headers_of(folder: Path, source: str, added: Added | None = None) -> Iterator[SourceFile]:
    for path in _files_below(folder):
        name = path.relative_to(folder).as_posix()
        wanted = path.suffix in HEADER_KINDS or (
            not path.suffix and re.fullmatch(r"(?:cccl/)?cuda/\w+", name)
        )
        if not wanted or _LEFT_OUT.search(name) or not _is_small(path):
            continue
        library = (added.library if added else "") or library_of(name)
        version = (added.version if added else "") or _version(folder, library)
        licence = added.licence if added else LICENCES.get(library, NVIDIA)
        yield SourceFile(path, source, library, version, licence)


def library_of(name: str) -> str:
    """The library that a header belongs to, by its path below the include folder."""
    for pattern, library in _LIBRARIES:
        if found := re.search(pattern, name):
            return library or found[0].lower()
    return "runtime"


@cache
def _version(folder: Path, library: str) -> str:
    """A library's version as its headers say; else the toolkit's, as ``cuda.h`` does."""
    asked = {"cublaslt": "cublas", "thrust": "cub", "libcudacxx": "cub"}.get(library, library)
    for name, file, pattern in _VERSIONS:
        if name == asked and (numbers := re.findall(pattern, _text(folder / file))):
            return ".".join(numbers) if len(numbers) > 1 else _dotted(int(numbers[0]), 100_000, 100)
    if found := re.search(r"#define CUDA(?:RT)?_VERSION\s+(\d+)", _text(folder / "cuda.h")):
        return _dotted(int(found[1]), 1000, 10)
    return ""


def _dotted(number: int, major: int, minor: int) -> str:
    return f"{number // major}.{number % major // minor}"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _require_text(path: Path) -> None:
    """Raise for a name that is no UTF-8: the index cannot hold it."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise UsageError("its name is no UTF-8", where=str(path), advice="rename it") from error


def _require_small(path: Path) -> None:
    """Raise for a file that is no documentation, by its size.

    Raises:
        OSError: it is not there.
    """
    if (size := path.stat().st_size) > LARGEST_BYTES:
        why = f"{size:,} bytes, and at most {LARGEST_BYTES:,} are read"
        raise UsageError("it is too large", where=str(path), why=why, advice="add a part of it")


def _files_below(folder: Path) -> list[Path]:
    """All files below a folder, in order; what goes or cannot be looked into meanwhile is left out.

    Links to folders are not followed: they may lead round in a ring.
    """
    return sorted(Path(parent, name) for parent, _, names in os.walk(folder) for name in names)


def _is_small(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size <= LARGEST_BYTES
    except OSError:
        return False
