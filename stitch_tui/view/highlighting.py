"""CUDA C++ and Python in colour through their syntax trees, computed for the lines that are looked at."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

import tree_sitter_cuda
import tree_sitter_python
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

_CUDA_COLOURS = """
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
_PYTHON_COLOURS = """
    (call function: (identifier) @call)
    (call function: (attribute attribute: (identifier) @call))
    (function_definition name: (identifier) @function)
    (class_definition name: (identifier) @type)
    (type (identifier) @type)
    [(integer) (float) (true) (false) (none)] @number
    (string) @string
    ["and" "as" "assert" "async" "await" "break" "class" "continue" "def" "del" "elif" "else" "except"
     "finally" "for" "from" "global" "if" "import" "in" "is" "lambda" "nonlocal" "not" "or" "pass" "raise"
     "return" "try" "while" "with" "yield"] @keyword
    (decorator) @preproc
    ((identifier) @builtin (#any-of? @builtin "self" "super"))
    (comment) @comment
"""


@dataclass(frozen=True)
class Grammar:
    """How a language is parsed, and which parts of its trees have a colour."""

    language: Language
    colours: str

    @cached_property
    def parser(self) -> Parser:
        return Parser(self.language)

    def parsed(self, lines: list[str]) -> Tree:
        return self.parser.parse("\n".join(lines).encode(errors="replace"))

    @cached_property
    def query(self) -> Query:
        """Compiled when the first line is drawn: that takes a while."""
        return Query(self.language, self.colours)


CUDA = Grammar(Language(tree_sitter_cuda.language()), _CUDA_COLOURS)
PYTHON = Grammar(Language(tree_sitter_python.language()), _PYTHON_COLOURS)


GRAMMARS = {".cu": CUDA, ".cuh": CUDA, ".h": CUDA, ".py": PYTHON}
"""By the ends of files' names."""


def grammar_of(file: str) -> Grammar | None:
    """The language of a file, by its name; None: one that has no colours."""
    return GRAMMARS.get(PurePath(file).suffix)


class Highlights:
    """The spans of one text's lines, which may still grow.

    A text that is complete and not too long is parsed as a whole; otherwise each block is parsed from the
    nearest line above it that looks like the beginning of a definition.

    Args:
        lines: without line ends; kept, not copied.
        grammar: None: nothing has a colour.
        complete: no more lines will come.
    """

    def __init__(self, lines: list[str], grammar: Grammar | None = CUDA, *, complete: bool = True) -> None:
        self._lines, self._grammar, self._first = lines, grammar, 0
        whole = complete and len(lines) <= WHOLE
        self._tree = grammar.parsed(lines) if whole and grammar else None
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
        if self._grammar is None:
            return {}
        if self._tree is not None:
            return _captured(self._grammar.query, self._tree, self._lines, 0, begin, end)
        above = range(begin, max(begin - CONTEXT, 0), -1)
        start = next((n for n in above if _begins(self._lines[n])), above[-1] if above else begin)
        tree = self._grammar.parsed(self._lines[start:end])
        return _captured(self._grammar.query, tree, self._lines, start, begin, end)


class Files:
    """The spans of several whole files' lines, one file after the other.

    Args:
        files: names, which tell the languages, and lines.
    """

    def __init__(self, files: Iterable[tuple[str, list[str]]]) -> None:
        self._starts: list[int] = []
        self._files: list[Highlights] = []
        start = 0
        for name, lines in files:
            self._starts.append(start)
            self._files.append(Highlights(lines, grammar_of(name)))
            start += len(lines)

    def line(self, number: int) -> list[Span]:
        """The spans of line `number` of all (from 0), in order, without overlaps."""
        at = bisect_right(self._starts, number) - 1
        return self._files[at].line(number - self._starts[at]) if at >= 0 else []


def _begins(line: str) -> bool:
    return bool(line) and not line[0].isspace() and line[0] not in "})#*"


def _captured(
    query: Query, tree: Tree, lines: list[str], offset: int, begin: int, end: int
) -> dict[int, list[Span]]:
    """Spans of the lines from `begin` to `end`; row 0 of the tree is line `offset`."""
    cursor = QueryCursor(query)
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
