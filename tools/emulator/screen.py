"""What the emulator does not run: found in the source, refused with the line, so never a wrong verdict."""

import re
from collections.abc import Iterator, Sequence

from stitch_tui.tools.emulator.tokens import Cursor, Token
from stitch_tui.tools.emulator.toolchain import HEADERS
from stitch_tui.tools.verdict import Category, Finding

INCLUDED = re.compile(r"[ \t]*#[ \t]*include[ \t]*<([^>]+)>|[ \t]*#[ \t]*include[ \t]*\"([^\"]+)\"")
HEADER_REASONS = (
    (
        re.compile(r"(torch|ATen|c10|pybind11)/|Python\.h"),
        "a candidate is plain CUDA C++ behind stitch.h: PyTorch's headers are not to be had",
    ),
    (re.compile(r"cudnn"), "the emulator has no cuDNN"),
    (re.compile(r"cut(lass|e)/"), "the emulator has no CUTLASS or CuTe"),
    (re.compile(r"nccl|nvshmem"), "the emulator is one device: no NCCL or NVSHMEM"),
    (re.compile(r"nvrtc|cuda_fp[864]|thrust/|cufft|cusparse|cusolver|curand"), "the emulator has no {name}"),
)
WORD_REASONS = (
    (re.compile(r"__cluster_dims__|this_cluster|cluster_group|map_shared_rank|cudaLaunchAttributeCluster\w*"),
     "thread block clusters"),
    (re.compile(r"cudaTextureObject_t|tex[123]D\w*|texture|cudaCreateTextureObject"), "textures"),
    (re.compile(r"cudaSurfaceObject_t|surf[123]D\w*"), "surfaces"),
    (re.compile(r"CUtensorMap|cuTensorMap\w*|cp_async_bulk\w*"), "bulk tensor copies (TMA)"),
    (re.compile(r"wgmma\w*"), "wgmma"),
    (re.compile(r"__nv_fp[864]_\w+"), "8-bit and smaller floats"),
    (re.compile(r"cuModule\w+|cuLaunchKernel\w*|nvrtc\w+"), "the driver API and NVRTC"),
)  # fmt: skip
MACRO_WORDS = ("texture",)
"""Common words: they count only where CUDA's meaning is plain, before ``<``."""


def unsupported(tokens: Sequence[Token], file: str) -> Iterator[Finding]:
    """Each unsupported construct once, at its first line.

    Headers that do not exist are left to the compiler, except those whose reason is worth a sentence.
    """
    said: set[str] = set()
    for line, message in (*_headers(tokens), *_words(tokens), *_nested_launches(tokens)):
        if message not in said:
            said.add(message)
            yield Finding(category=Category.UNSUPPORTED, message=message, file=file, line=line)


def _headers(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    for token in tokens:
        found = INCLUDED.match(token.text) if token.kind == "pp" else None
        name = (found[1] or found[2]) if found else ""
        if not name or (HEADERS / name).is_file():
            continue
        for pattern, reason in HEADER_REASONS:
            if pattern.match(name):
                yield token.line, f"{name}: {reason.format(name=name)}"


def _words(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    cursor = Cursor(list(tokens))
    for i, token in enumerate(tokens):
        if token.kind != "id" or (token.text in MACRO_WORDS and cursor.text(cursor.after(i)) != "<"):
            continue
        for pattern, what in WORD_REASONS:
            if pattern.fullmatch(token.text):
                yield token.line, f"{token.text}: the emulator does not run {what}"


def _nested_launches(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """A ``<<<`` in the body of a ``__global__`` or ``__device__``-only function."""
    on_device, depth, body_at = False, 0, -1
    for token in tokens:
        if token.text == "__global__" or (token.text == "__device__" and depth == 0):
            on_device = True
        elif token.kind == "op" and token.text == "{":
            depth += 1
            body_at = depth if on_device and body_at < 0 else body_at
        elif token.kind == "op" and token.text == "}":
            body_at, on_device = (-1, False) if depth == body_at else (body_at, on_device)
            depth -= 1
        elif token.kind == "op" and token.text == ";" and body_at < 0:
            on_device = False
        elif token.kind == "op" and token.text == "<<<" and body_at >= 0:
            yield token.line, "a kernel launch inside a kernel: the emulator does not run dynamic parallelism"
