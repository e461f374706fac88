"""CUDA C++ into C++17: the few constructs that a header cannot express.

::

    k<<<grid, block, bytes, stream>>>(args)   a lambda that the runtime calls once for each thread
    __shared__ float tile[16][17];            a reference into the block's shared memory (shared_memory.py)
    asm volatile("ptx" ...)                   C++ for the instructions we know (inline_ptx.py)
    __launch_bounds__, __noinline__           dropped or replaced

Works on tokens, never on text, and keeps every newline: diagnostics, debug information and findings all carry
the line numbers of the ``.cu``.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools.emulator.inline_ptx import translate_asm
from stitch_tui.tools.emulator.ptx.vocabulary import UnknownPtx
from stitch_tui.tools.emulator.screen import unsupported
from stitch_tui.tools.emulator.shared_memory import rewrite_shared
from stitch_tui.tools.emulator.sources import Sources
from stitch_tui.tools.emulator.tokens import Cursor, SourceError, Token, text_of, tokenize
from stitch_tui.tools.verdict import Category, Finding

INCLUDE = re.compile(r"""([ \t]*#[ \t]*include[ \t]*)["<]([^">]+)[">](.*)""", re.S)
DEFINE = re.compile(r"([ \t]*#[ \t]*define[ \t]+\w+(?:\([^)]*\))?)(.*)", re.S)
VOID_CAST = re.compile(r"\(\s*\(\s*(?:const\s+)?void\s*\*\s*\)")
FUNCTION_STARTS_AFTER = (")", "const", "noexcept", "else", "do", "try")
TAKES_KERNEL = (
    "cudaLaunchKernel",
    "cudaLaunchCooperativeKernel",
    "cudaFuncSetAttribute",
    "cudaFuncSetCacheConfig",
)
"""Candidates cast the kernel to ``void*`` here; our templates want its type."""


@dataclass(frozen=True)
class Rewritten:
    """The C++ to compile, beside the rewritten copies of its local headers."""

    main: Path
    inline_ptx: bool
    refused: tuple[Finding, ...]
    """Why it must not be compiled."""


def rewrite(sources: Sources, folder: Path) -> Rewritten:
    """Write rewritten copies of all of a candidate's files into `folder`."""
    targets = {path: f"{k}_{path.name}" if k else path.name for k, path in enumerate(sources.texts)}
    refused: list[Finding] = []
    inline_ptx = False
    for path, target in targets.items():
        one = _Rewriter(tokenize(sources.texts[path]), sources.name(path))
        one.redirect_includes(sources, path, targets)
        text = one.run()
        once = "#pragma once\n" if path != sources.main and "#pragma once" in sources.texts[path] else ""
        (folder / target).write_text(f'{once}#line 1 "{sources.name(path)}"\n{text}', encoding="utf-8")
        refused += one.refused
        inline_ptx |= one.inline_ptx
    return Rewritten(folder / targets[sources.main], inline_ptx, tuple(refused))


class _Rewriter:
    """One file."""

    def __init__(self, tokens: list[Token], name: str) -> None:
        self.cursor, self.name = Cursor(tokens), name
        self.refused: list[Finding] = list(unsupported(tokens, name))
        self.inline_ptx = False
        self.scopes: list[bool] = []
        """One for each open brace: is it in a function?"""

    def redirect_includes(self, sources: Sources, path: Path, targets: dict[Path, str]) -> None:
        """Local includes name the rewritten copies."""
        for token in self.cursor.tokens:
            found = INCLUDE.match(token.text) if token.kind == "pp" else None
            if found and (local := sources.local(path, found[2])):
                token.text = f'{found[1]}"{targets[local]}"{found[3]}'

    def run(self) -> str:
        """Rewrite everything; what is not understood lands in `refused`."""
        i = 0
        try:
            while i < len(self.cursor.tokens):
                i = self._step(i) + 1
        except SourceError as error:
            self._refuse(error.line, error.message, Category.BUILD_ERROR)
        return text_of(self.cursor.tokens)

    def _step(self, i: int) -> int:
        token = self.cursor.tokens[i]
        if token.kind == "pp":
            self._macro(token)
        elif token.kind == "op":
            return self._operator(i)
        elif token.kind == "id":
            return self._word(i)
        return i

    def _operator(self, i: int) -> int:
        text = self.cursor.text(i)
        if text == "{":
            k = self.cursor.before(i)
            starts = self.cursor.text(k) in FUNCTION_STARTS_AFTER or self.cursor.kind(k) == "gen"
            self.scopes.append(self._in_function or starts)
        elif text == "}" and self.scopes:
            self.scopes.pop()
        elif text == "<<<":
            return _rewrite_launch(self.cursor, i)
        return i

    @property
    def _in_function(self) -> bool:
        return bool(self.scopes) and self.scopes[-1]

    def _word(self, i: int) -> int:
        cursor, text = self.cursor, self.cursor.text(i)
        following = cursor.after(i)
        if text == "__shared__":
            return rewrite_shared(cursor, i, self._in_function)
        if text in ("__launch_bounds__", "__maxnreg__") and cursor.text(following) == "(":
            cursor.replace(i, cursor.closing(following), " ")
            cursor.tokens[i].kind = "ws"
        elif text == "__noinline__":
            cursor.tokens[i].text = "__attribute__((noinline))"
        elif text in TAKES_KERNEL and VOID_CAST.match(text_of(cursor.tokens[following : following + 14])):
            cast = cursor.after(following)
            cursor.replace(cast, cursor.closing(cast), " ")
        elif text in ("asm", "__asm__", "__asm"):
            self._assembly(i)
        return i

    def _assembly(self, i: int) -> None:
        cursor = self.cursor
        opening = cursor.after(i)
        while cursor.text(opening) in ("volatile", "__volatile__", "goto", "inline"):
            opening = cursor.after(opening)
        if cursor.text(opening) != "(":
            return
        end = cursor.closing(opening)
        try:
            translated = translate_asm(cursor.tokens[opening + 1 : end])
        except UnknownPtx as unknown:
            self._refuse(cursor.tokens[i].line, f"inline PTX the emulator does not know: {unknown}")
            return
        cursor.replace(i, end, translated)
        self.inline_ptx = True

    def _macro(self, token: Token) -> None:
        """Launches and shared memory in the body of a ``#define``."""
        found = DEFINE.match(token.text)
        if not found or not ("<<<" in token.text or "__shared__" in token.text):
            return
        body = _Rewriter(tokenize(re.sub(r"\\\r?\n", " ", found[2]), token.line), self.name)
        body.scopes.append(True)
        text = found[1] + body.run().replace("\n", " ") + " \\\n" * token.text.count("\n")
        token.text = text[:-3] + "\n" if text.endswith("\\\n") else text
        self.refused += body.refused

    def _refuse(self, line: int, message: str, category: Category = Category.UNSUPPORTED) -> None:
        self.refused.append(Finding(category=category, message=message, file=self.name, line=line))


def _rewrite_launch(cursor: Cursor, i: int) -> int:
    """Replace the launch whose ``<<<`` is at `i`; returns where it starts."""
    first, config_end = _kernel_start(cursor, i), _config_end(cursor, i)
    line = cursor.tokens[i].line
    opening = cursor.after(config_end + 2)
    if cursor.text(opening) != "(":
        raise SourceError(line, ">>> is not followed by an argument list")
    last = cursor.closing(opening)
    kernel = text_of(cursor.tokens[first:i]).strip()
    config = text_of(cursor.tokens[i + 1 : config_end])
    _name_null(cursor, opening, last)
    arguments = text_of(cursor.tokens[opening + 1 : last])
    shown = re.sub(r"\s+", " ", kernel.replace("\\", "").replace('"', "'"))
    text = (
        f'::stitch_emu::bind("{shown}", STITCH_HERE, ::stitch_emu::Cfg({config}), '
        f"[=](auto&... stitch_a) {{ {kernel}(stitch_a...); }})({arguments})"
    )
    _replace_keeping(cursor, first, last, text)
    return first


def _name_null(cursor: Cursor, opening: int, last: int) -> None:
    """An argument ``NULL`` is an integer to a template; ``nullptr`` converts to the kernel's pointer."""
    for k in range(opening + 1, last):
        alone = cursor.text(cursor.before(k)) in ("(", ",") and cursor.text(cursor.after(k)) in (",", ")")
        if cursor.text(k) == "NULL" and alone:
            cursor.tokens[k].text = "nullptr"


def _replace_keeping(cursor: Cursor, first: int, last: int, text: str) -> None:
    """As `Cursor.replace`, but newlines inside the text (comments end there) stay where they are."""
    missing = text_of(cursor.tokens[first : last + 1]).count("\n") - text.count("\n")
    line = cursor.tokens[first].line
    cursor.tokens[first : last + 1] = [Token("gen", text + "\n" * max(0, missing), line)]


def _kernel_start(cursor: Cursor, i: int) -> int:
    """Where ``ns::name<targs>`` or ``(*pointer)`` before the ``<<<`` at `i` begins."""
    j = cursor.before(i)
    if cursor.text(j) == ">":
        j = cursor.before(cursor.opening(j, "<", ">"))
    if cursor.text(j) == ")":
        j = cursor.opening(j, "(", ")")
        named = cursor.before(j)
        return named if cursor.kind(named) == "id" else j
    if cursor.kind(j) != "id":
        raise SourceError(cursor.tokens[i].line, "cannot find the kernel's name before <<<")
    while cursor.text(cursor.before(j)) in ("::", ".", "->"):
        j = cursor.before(j)
        if cursor.kind(cursor.before(j)) != "id":
            break
        j = cursor.before(j)
    return j


def _config_end(cursor: Cursor, i: int) -> int:
    """Index of the first ``>`` of the ``>>>`` that ends the configuration."""
    depth = 0
    for j in range(i + 1, len(cursor.tokens) - 2):
        text = cursor.text(j)
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        if depth == 0 and [cursor.text(k) for k in (j, j + 1, j + 2)] == [">", ">", ">"]:
            return j
    raise SourceError(cursor.tokens[i].line, "<<< without >>>")
