"""CUDA C++ in colour through its syntax tree, computed for the lines that are looked at."""

from functools import cache

import tree_sitter_cuda
from tree_sitter import Language, Parser, Query, QueryCursor, Tree

Span = tuple[int, int, str]
"""Begin, end (in characters of the line) and kind, ``keyword``."""

KINDS = ("comment", "string", "number", "type", "cuda", "keyword", "preproc", "call", "function", "builtin")
BLOCK = 128
"""Lines whose spans are computed together."""
WHOLE = 2000
"""Longest text, in lines, that is parsed as a whole."""
CONTEXT = 200
"""Lines above a block that are searched for the beginning of a definition."""
KEPT = 64
"""Blocks whose spans are kept: a screen looks at a few."""

_LANGUAGE = Language(tree_sitter_cuda.language())
_QUERY = """
    (call_expression function: (identifier) @call)
    (call_expression function: (qualified_identifier name: (identifier) @call))
    (call_expression function: (template_function name: (identifier) @call))
    (function_declarator declarator: (identifier) @function)
    [(primitive_type) (type_identifier) (sized_type_specifier) (auto)] @type
    (number_literal) @number
    [(string_literal) (char_literal) (system_lib_string) (raw_string_literal)] @string
    ["if" "else" "for" "while" "do" "return" "switch" "case" "break" "continue" "struct" "template"
     "typename" "using" "namespace" "const" "constexpr" "static" "inline" "extern" "sizeof" "typedef"
     "class" "enum" "union" "volatile" "default" "goto"] @keyword
    [(true) (false) (null)] @number
    ["__global__" "__device__" "__host__" "__shared__" "__constant__" "__launch_bounds__" "<<<" ">>>"] @cuda
    ["#include" "#define" "#if" "#ifdef" "#ifndef" "#else" "#endif" "#elif" (preproc_directive)] @preproc
    ((identifier) @builtin
     (#any-of? @builtin "threadIdx" "blockIdx" "blockDim" "gridDim" "warpSize"))
    (comment) @comment
"""
_PARSER = Parser(_LANGUAGE)


class Highlights:
    """The spans of one text's lines, which may still grow.

    A text that is complete and not too long is parsed as a whole; otherwise each block is parsed from the
    nearest line above it that looks like the beginning of a definition.

    Args:
        lines: without line ends; kept, not copied.
    """

    def __init__(self, lines: list[str], *, complete: bool = True) -> None:
        self._lines, self._first = lines, 0
        whole = complete and len(lines) <= WHOLE
        self._tree = _parsed(lines) if whole else None
        self._blocks: dict[int, tuple[int, dict[int, list[Span]]]] = {}

    def line(self, number: int) -> list[Span]:
        """The spans of line `number` (from 0), in order, without overlaps."""
        index = number - self._first
        block = index // BLOCK
        end = min((block + 1) * BLOCK, len(self._lines))
        known, spans = self._blocks.get(block, (-1, {}))
        if known != end:
            spans = self._spans(block * BLOCK, end)
            self._blocks.pop(block, None)
            self._blocks[block] = end, spans
            if len(self._blocks) > KEPT:
                del self._blocks[next(iter(self._blocks))]
        return spans.get(index, [])

    def begin_at(self, number: int) -> None:
        """The lines before `number` were removed from the list; all others keep their numbers."""
        self._first = number
        self._blocks.clear()

    def _spans(self, begin: int, end: int) -> dict[int, list[Span]]:
        if self._tree is not None:
            return _captured(self._tree, self._lines, 0, begin, end)
        above = range(begin, max(begin - CONTEXT, 0), -1)
        start = next((n for n in above if _begins(self._lines[n])), above[-1] if above else begin)
        return _captured(_parsed(self._lines[start:end]), self._lines, start, begin, end)


@cache
def _query() -> Query:
    """Compiled when the first line is drawn: that takes a while."""
    return Query(_LANGUAGE, _QUERY)


def _parsed(lines: list[str]) -> Tree:
    return _PARSER.parse("\n".join(lines).encode(errors="replace"))


def _begins(line: str) -> bool:
    return bool(line) and not line[0].isspace() and line[0] not in "})#*"


def _captured(tree: Tree, lines: list[str], offset: int, begin: int, end: int) -> dict[int, list[Span]]:
    """Spans of the lines from `begin` to `end`; row 0 of the tree is line `offset`."""
    cursor = QueryCursor(_query())
    cursor.set_point_range((begin - offset, 0), (end - offset, 0))
    found: dict[int, list[Span]] = {}
    for kind, nodes in cursor.captures(tree.root_node).items():
        for node in nodes:
            (row, left), (last, right) = node.start_point, node.end_point
            for number in range(max(row + offset, begin), min(last + offset, end - 1) + 1):
                line = lines[number]
                stop = right if number == last + offset else len(line.encode(errors="replace"))
                span = (left if number == row + offset else 0, stop, kind)
                found.setdefault(number, []).append(_in_characters(line, span))
    return {number: _disjoint(spans) for number, spans in found.items()}


def _in_characters(line: str, span: Span) -> Span:
    """From offsets in UTF-8, which the parser counts in, to characters."""
    if line.isascii():
        return span
    data = line.encode(errors="replace")
    begin, end, kind = span
    return len(data[:begin].decode(errors="ignore")), len(data[:end].decode(errors="ignore")), kind


def _disjoint(spans: list[Span]) -> list[Span]:
    """The longer span first, then by the order of `KINDS`; what overlaps one that is taken is dropped."""
    taken: list[Span] = []
    for span in sorted(spans, key=lambda s: (s[0], -s[1], _RANK[s[2]])):
        if span[0] < span[1] and (not taken or span[0] >= taken[-1][1]):
            taken.append(span)
    return taken


_RANK = {kind: rank for rank, kind in enumerate(("builtin", "cuda", *KINDS))}
