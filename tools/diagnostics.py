"""Read what nvcc and the compilers behind it print: each diagnostic as a located finding."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from stitch_tui.tools.verdict import Category, Finding

MOST_FINDINGS = 40
LINE_CHARS = 240
EXPLANATION_LINES = 4

_EDG = re.compile(
    r"(?P<file>[^\s(][^(]*)\((?P<line>\d+)\): (?P<severity>catastrophic error|error|warning|note|remark)"
    r"(?: #(?P<code>[\w-]+))?: (?P<text>.*)"
)
_GCC = re.compile(
    r"(?P<file>[^:\s][^:]*):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<severity>fatal error|[Ee]rror|[Ww]arning|note): (?P<text>.*)"
)
_PTXAS = re.compile(
    r"ptxas (?:(?P<file>.+?), line (?P<line>\d+); )?(?P<severity>error|warning|fatal)\s*: (?P<text>.*)"
)
_DRIVER = re.compile(
    r"(?P<tool>nvcc|nvlink|cudafe\+\+|cicc) (?P<severity>error|warning|fatal)\s*: (?P<text>.*)"
)
_IN_FUNCTION = re.compile(r".*: in function [`'](?P<name>.*)':$")
_UNDEFINED = re.compile(r".*(?P<text>undefined reference to [`'].*')$")
_LINKER = re.compile(r"(?:\S*/)?ld(?:\.\w+)?: (?P<text>.*)")
_FRAME = re.compile(r"\bat line (?P<line>\d+) of (?P<file>.+?)\s*$")
_PTX_LOCATION = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)")
_PTX_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_END_OF_EXPLANATION = re.compile(r"\S|\s*detected during:|\s*\d* \|")
_ERRORS = ("catastrophic error", "fatal error", "error", "fatal")
_ECHO = ("Ptx assembly aborted", "warning: ")
"""Lines that only repeat that something failed, and linker warnings."""


@dataclass
class _Diagnostic:
    """One diagnostic as it was printed."""

    tool: str
    severity: str
    text: str
    file: str = ""
    line: int = 0
    column: int = 0
    where: str = ""
    code: str = ""
    more: list[str] = field(default_factory=list)
    """The lines below that belong to it: explanation, source, caret, template backtrace."""

    @property
    def is_error(self) -> bool:
        return self.severity.lower() in _ERRORS


LocalName = Callable[[str], str]
"""From a file as the compiler names it to its name in the candidate's folder; empty for any other file."""


def findings(log: str, local: LocalName, ptx: str = "") -> tuple[Finding, ...]:
    """Diagnostics of a build, errors first, each once, at most `MOST_FINDINGS`.

    ``detail`` has ``severity`` (error or warning) and ``tool``; also ``code``, and ``header``: the place in a
    library header where an error surfaced, while the finding points to the candidate's line that led there.

    Args:
        log: everything that nvcc printed.
        local: names the candidate's own files.
        ptx: the PTX that ptxas was given, to trace its complaints to source lines.
    """
    once: dict[tuple[str, int, str], Finding] = {}
    for diagnostic in _diagnostics(log):
        finding = _finding(diagnostic, local, ptx)
        once.setdefault((finding.file, finding.line, finding.message), finding)
    ordered = sorted(once.values(), key=lambda finding: finding.detail["severity"] != "error")
    return tuple(ordered[:MOST_FINDINGS])


def _diagnostics(log: str) -> Iterator[_Diagnostic]:
    current: _Diagnostic | None = None
    function = ""
    for line in log.splitlines():
        if inside := _IN_FUNCTION.fullmatch(line):
            function = inside["name"]
        elif started := _start(line, function):
            if started.severity in ("note", "remark"):
                if current:
                    current.more.append(line)
                continue
            if current:
                yield current
            current = started
        elif not line.strip():
            if current:
                yield current
            current = None
        elif current and line.startswith((" ", "\t")):
            current.more.append(line)
    if current:
        yield current


def _start(line: str, function: str) -> _Diagnostic | None:
    """The diagnostic that begins on this line, if one does."""
    if match := _PTXAS.fullmatch(line):
        if match["text"].startswith(_ECHO):
            return None
        return _Diagnostic("ptxas", match["severity"], match["text"], line=int(match["line"] or 0))
    if match := _DRIVER.fullmatch(line):
        return _Diagnostic(match["tool"], match["severity"], match["text"])
    if match := _UNDEFINED.fullmatch(line):
        return _Diagnostic("ld", "error", match["text"].replace("`", "'"), where=function)
    if match := _LINKER.fullmatch(line):
        return None if match["text"].startswith(_ECHO) else _Diagnostic("ld", "error", match["text"])
    for tool, pattern in (("nvcc", _EDG), ("c++", _GCC)):
        if match := pattern.fullmatch(line):
            part = match.groupdict()
            return _Diagnostic(
                tool,
                part["severity"].lower(),
                part["text"],
                file=part["file"],
                line=int(part["line"]),
                column=int(part.get("column") or 0),
                code=part.get("code") or "",
            )
    return None


def _finding(diagnostic: _Diagnostic, local: LocalName, ptx: str) -> Finding:
    file, line, column = _place(diagnostic, local, ptx)
    detail = {"severity": "error" if diagnostic.is_error else "warning", "tool": diagnostic.tool}
    if diagnostic.code:
        detail["code"] = diagnostic.code
    if diagnostic.file and not local(diagnostic.file):
        detail["header"] = f"{diagnostic.file}:{diagnostic.line}"
    return Finding(
        category=_category(diagnostic),
        message=_message(diagnostic),
        file=file,
        line=line,
        column=column,
        where=diagnostic.where,
        detail=detail,
    )


def _place(diagnostic: _Diagnostic, local: LocalName, ptx: str) -> tuple[str, int, int]:
    """File, line and column for the Coder: its own code wherever the compiler tells."""
    if diagnostic.tool == "ptxas":
        return _ptx_origin(ptx, diagnostic.line, local)
    if not diagnostic.file:
        return "", 0, 0
    if name := local(diagnostic.file):
        return name, diagnostic.line, diagnostic.column or _caret(diagnostic.more)
    for more in diagnostic.more:  # the innermost frame of the template backtrace that is the candidate's
        if (frame := _FRAME.search(more)) and (name := local(frame["file"])):
            return name, int(frame["line"]), 0
    return diagnostic.file, diagnostic.line, diagnostic.column or _caret(diagnostic.more)


def _category(diagnostic: _Diagnostic) -> Category:
    linking = diagnostic.tool in ("ld", "nvlink") or diagnostic.text.startswith("Unresolved extern")
    return Category.LINK_ERROR if linking else Category.BUILD_ERROR


def _message(diagnostic: _Diagnostic) -> str:
    """The text and its explanation, without notes, the echo of the source and the template backtrace."""
    lines = [diagnostic.text]
    for line in diagnostic.more:
        if _END_OF_EXPLANATION.match(line):
            break
        lines.append(line.strip())
        if line.strip() == "^":
            del lines[-2:]  # the caret and the source line above it
            break
    return "\n".join(_trimmed(line) for line in lines[: 1 + EXPLANATION_LINES])


def _trimmed(line: str) -> str:
    """A long line keeps both ends: what is wrong stands at the front, the type's name often at the back."""
    half = LINE_CHARS // 2
    return line if len(line) <= LINE_CHARS else f"{line[:half]} ... {line[-half:]}"


def _caret(more: list[str]) -> int:
    """Column of nvcc's caret, which stands below the source line printed with two blanks before it."""
    carets = (line.index("^") - 1 for line in more if line.strip() == "^")
    return max(next(carets, 0), 0)


def _ptx_origin(ptx: str, line: int, local: LocalName) -> tuple[str, int, int]:
    """The source place that a line of PTX came from, by the ``.loc`` before it; empty if unknown."""
    files = {match[1]: match[2] for match in _PTX_FILE.finditer(ptx)}
    for text in reversed(ptx.splitlines()[: max(line, 0)]):
        if location := _PTX_LOCATION.match(text):
            name = local(files.get(location[1], ""))
            return (name, int(location[2]), int(location[3])) if name else ("", 0, 0)
    return "", 0, 0
