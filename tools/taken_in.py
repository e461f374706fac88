"""What a source takes in from other files while it is built: a compiler's errors would quote them.

A kernel needs headers of the toolkit and of the standard library, by their plain names.
"""

import re
from bisect import bisect
from collections.abc import Iterator

from stitch_tui.tools.cuda_tokens import TOKEN

_SPLICE = re.compile(r"\\[ \t\f\v]*\r?\n")
"""Where compilers join lines, with blanks behind the backslash too."""
_TAKES = {"include", "include_next", "import", "embed"}
_NAME = re.compile(r'<([^>\n]+)>|"([^"\n]*)"')
_RENAMED = re.compile(r'[ \t]*\d+[ \t]*"([^"\n]*)"')
"""Behind ``#line``, or behind ``#`` itself: errors are then shown with lines of that file."""
_ASSEMBLY = {"asm", "__asm", "__asm__"}
_ASSEMBLED = re.compile(r"\.\s*(?:incbin|include|macro|altmacro|irpc?|rept)\b", re.IGNORECASE)
"""Of the host's assembler, with what it puts directives together by; PTX has none of them."""
_CODE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3}))")


def taken_in(source: str) -> Iterator[tuple[str, int]]:
    """Each thing that lies elsewhere, or of which nobody can tell where it lies: what it is, and its line."""
    cuts, removed = list[int](), 0
    for splice in _SPLICE.finditer(source):
        cuts.append(splice.start() - removed)
        removed += len(splice[0])
    joined = _SPLICE.sub("", source)
    for message, at in _found(joined):
        yield message, 1 + joined.count("\n", 0, at) + bisect(cuts, at)


def _found(source: str) -> Iterator[tuple[str, int]]:
    begins, in_directive, assembly = True, False, ""
    for token in TOKEN.finditer(source):
        kind, text = token.lastgroup, token[0]
        if kind == "skip":
            begins = begins or ("\n" in text and not text.startswith("/*"))
            in_directive = in_directive and not begins
            continue
        if (text == "#" and begins) or (text == "%" and begins and source.startswith("%:", token.start())):
            in_directive = True
            rest = token.end() + (text == "%")
            if message := _renamed(source, rest):
                yield message, token.start()
        elif in_directive and kind == "name":
            in_directive = False
            if message := _directive(text, source, token.end()):
                yield message, token.start()
        if text in _ASSEMBLY:
            assembly = text
        elif kind in ("string", "raw", "mark") and assembly:
            assembly += text.strip('"uULR8')
            if _ASSEMBLED.search(_plain(assembly)):
                yield "assembles what stands in another file", token.start()
                assembly = ""
        elif text == ";":
            assembly = ""
        begins = False


def _directive(name: str, source: str, at: int) -> str:
    """What is wrong with a directive whose name ends at `at`; empty when nothing is."""
    if name == "line":
        return _renamed(source, at)
    if name not in _TAKES:
        return ""
    at = _behind_blanks(source, at)
    if not (file := _NAME.match(source, at)):
        return "takes in a file whose name is computed"
    path = file[1] or file[2] or ""
    return f"takes in {path}, which lies elsewhere" if _is_elsewhere(path) else ""


def _renamed(source: str, at: int) -> str:
    found = _RENAMED.match(source, at)
    return f"says that it is {found[1]}" if found and _is_elsewhere(found[1]) else ""


def _behind_blanks(source: str, at: int) -> int:
    while (blank := TOKEN.match(source, at)) and blank.lastgroup == "skip" and not blank[0].startswith("\n"):
        at = blank.end()
    return at


def _is_elsewhere(path: str) -> bool:
    return path.startswith(("/", "~")) or ".." in path.split("/") or "\\" in path


def _plain(text: str) -> str:
    """The characters of a string literal, those given by their numbers too."""
    return _CODE.sub(lambda code: chr(int(code[1], 16) if code[1] else int(code[2], 8)), text)
