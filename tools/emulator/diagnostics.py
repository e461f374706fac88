"""Compiler and linker output as findings at the candidate's own lines."""

import re
from collections.abc import Iterable

from stitch_tui.tools.emulator.sources import candidate_name, is_candidates
from stitch_tui.tools.verdict import Category, Finding

ERROR = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?:fatal )?error: (?P<text>.*)$")
NVCC_ERROR = re.compile(
    r"^(?P<file>[^(\n]+)\((?P<line>\d+)\): (?:catastrophic )?error(?: #[\w-]+)?: (?P<text>.*)$"
)
CAME_FROM = re.compile(
    r"^(?:In file included from |\s+from )?(?P<file>[^:\n]+):(?P<line>\d+)(?::\d+)?[:,]"
    r"(?:\s*$|\s+(?:required from|in instantiation|note: in instantiation))"
)
NO_HEADER = re.compile(
    r"^(?:(?P<gcc>\S+): No such file or directory|'(?P<clang>[^']+)' file not found"
    r"|cannot open source file \"(?P<nvcc>[^\"]+)\")"
)
UNDEFINED = re.compile(r"(?:(?P<file>[\w./-]+):(?P<line>\d+): )?undefined reference to [`'](?P<name>[^'`]+)'")
TWICE = re.compile(r"multiple definition of [`'](?P<name>[^'`]+)'")

Place = tuple[str, int]


def compiler_errors(text: str) -> tuple[Finding, ...]:
    """The errors of g++, clang++ or nvcc, each once; one inside our headers at the line that led there.

    A header that does not exist is `UNSUPPORTED`, everything else `BUILD_ERROR`.
    """
    found: list[Finding] = []
    led_here: Place | None = None
    for line in text.splitlines():
        if error := ERROR.match(line) or NVCC_ERROR.match(line):
            found.append(_error(error.groupdict(), led_here))
            led_here = None
        elif (step := CAME_FROM.match(line)) and is_candidates(step["file"]):
            led_here = (candidate_name(step["file"]), int(step["line"]))
    return _each_once(found)


def linker_errors(text: str) -> tuple[Finding, ...]:
    """What the linker could not resolve, each name once."""
    found: list[Finding] = []
    for line in text.splitlines():
        if missing := UNDEFINED.search(line):
            found.append(_unresolved(missing))
        elif twice := TWICE.search(line):
            found.append(Finding(category=Category.LINK_ERROR, message=f"{twice['name']} is defined twice"))
    return _each_once(found, by_place=False)


def _error(parts: dict[str, str | None], led_here: Place | None) -> Finding:
    file, line, text = parts["file"] or "", int(parts["line"] or 0), (parts["text"] or "").strip()
    column = int(parts.get("column") or 0)
    if not is_candidates(file) and led_here:
        (file, line), column = led_here, 0
    if header := NO_HEADER.match(text):
        return missing_header(
            next(name for name in header.groups() if name), candidate_name(file), line, column
        )
    return Finding(
        category=Category.BUILD_ERROR, message=text, file=candidate_name(file), line=line, column=column
    )


def missing_header(name: str, file: str, line: int, column: int = 0) -> Finding:
    return Finding(
        category=Category.UNSUPPORTED,
        message=f"the emulator has no header {name}",
        file=file,
        line=line,
        column=column,
    )


def _unresolved(missing: re.Match[str]) -> Finding:
    name = missing["name"]
    if name == "stitch_run":
        return Finding(
            category=Category.LINK_ERROR,
            message='no extern "C" int stitch_run(const stitch_call*): every candidate defines it',
        )
    return Finding(
        category=Category.LINK_ERROR,
        message=f"{name} is declared and used, but defined nowhere",
        file=candidate_name(missing["file"] or ""),
        line=int(missing["line"] or 0),
    )


def _each_once(found: Iterable[Finding], by_place: bool = True) -> tuple[Finding, ...]:
    unique = {(f.message, f.file, f.line) if by_place else (f.message,): f for f in reversed(list(found))}
    return tuple(reversed(unique.values()))
