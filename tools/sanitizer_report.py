"""What compute-sanitizer printed, as findings: kind, kernel, line, thread."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from stitch_tui.tools.verdict import Category, Finding

_PREFIX = re.compile(r"^={7,9} ?")
_PLACE = re.compile(
    r"(?:at|Device Frame:) ?(?:"
    r"(?P<kernel>.+?)\+0x[0-9a-f]+(?: in (?P<file>[^\s:]+):(?P<line>\d+))?"
    r"|0x[0-9a-f]+ in (?P<old_file>[^\s:]+):(?P<old_line>\d+):(?P<old_kernel>.+?)"
    r"|0x[0-9a-f]+ in (?P<bare>.+?)"
    r")(?: \[(?P<hazards>\d+) hazards?\])?$"
)
_THREAD = re.compile(r"by thread (\(\d+,\d+,\d+\)) in block (\(\d+,\d+,\d+\))")
_ACCESS = re.compile(r"(?:Address|Access (?:to|at)) 0x[0-9a-f]+ is (?P<how>.+)|and is (?P<far>.+)")
_RACE = re.compile(r"(?P<severity>Error|Warning): Race reported between (?P<access>\w+) access (?P<place>.+)")
_OTHER = re.compile(r"and (?P<access>\w+) access (?P<place>at .+)")
_HOST = re.compile(r"Host Frame|Saved host backtrace|in /lib|\[0x[0-9a-f]+\]")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_SUMMARY = re.compile(r"(ERROR|RACECHECK) SUMMARY: (\d+)")


@dataclass(frozen=True)
class Place:
    """A position in device code; `line` 0 where the tool gave none."""

    kernel: str = ""
    file: str = ""
    line: int = 0

    @property
    def name(self) -> str:
        """The file's, without folders."""
        return PurePosixPath(self.file).name


@dataclass
class _Report:
    """One fault: its headline and the lines below it."""

    headline: str
    body: list[str] = field(default_factory=list)


def finished(text: str) -> bool:
    """Did the tool come to its end?  Only then does silence mean that there was nothing."""
    return _SUMMARY.search(text) is not None


def errors_of(text: str, staged: str, source: str) -> list[Finding]:
    """The faults that one tool reports, each place once, in the tool's order.

    Args:
        staged: the candidate's file name as it was compiled; a place in it is preferred to one in a header.
        source: its file name as findings shall have it.
    """
    found: dict[tuple[Category, str, int, int], Finding] = {}
    for report in _reports(text):
        finding = _finding(report, staged)
        if finding is not None:
            if finding.file == staged:
                finding = finding.model_copy(update={"file": source})
            found.setdefault((finding.category, finding.file, finding.line, finding.other_line), finding)
    return list(found.values())


def _reports(text: str) -> Iterator[_Report]:
    """Faults as blocks of lines: a headline stands at the margin, its details are indented."""
    current: _Report | None = None
    for raw in text.splitlines():
        match = _PREFIX.match(raw)
        if match is None:
            continue
        line = raw[match.end() :].rstrip()
        if not line or not line.startswith(" "):
            if current is not None:
                yield current
            current = _Report(line.strip()) if line else None
        elif current is not None:
            current.body.append(line.strip())
    if current is not None:
        yield current


def _finding(report: _Report, staged: str) -> Finding | None:
    race = _RACE.match(report.headline)
    if race is not None:
        return _race(race, report)
    category = _category(report)
    if category is None:
        return None
    places = [place for line in report.body if (place := _placed(line))]
    place = _nearest(places, staged)
    details = [
        match["how"] or match["far"] for line in report.body if (match := _ACCESS.match(line)) is not None
    ]
    thread = next((f"block {m[2]} thread {m[1]}" for line in report.body if (m := _THREAD.search(line))), "")
    text = ", ".join([report.headline.rstrip("."), *(_ADDRESS.sub("", detail) for detail in details)])
    return Finding(
        category=category,
        message=text,
        file=place.name,
        line=place.line,
        where=", ".join(part for part in (_short(place.kernel), thread) if part),
        detail={"severity": "error"},
    )


def _category(report: _Report) -> Category | None:
    """None for what is no fault of device code: banners, summaries, API calls that merely fail."""
    headline = report.headline
    if headline.startswith(("Invalid __", "Invalid address", "Invalid local", "Invalid shared")):
        misaligned = any("misaligned" in line for line in report.body)
        return Category.MISALIGNED if misaligned else Category.OUT_OF_BOUNDS
    if headline.startswith("Uninitialized"):
        return Category.UNINITIALISED
    if headline.startswith("Barrier error"):
        return Category.BARRIER
    if "stack overflow" in headline.lower() or headline.startswith(("Illegal", "Warp")):
        return Category.ILLEGAL_ACCESS
    return None


def _race(match: re.Match[str], report: _Report) -> Finding | None:
    """Warnings are left out: the tool itself does not call them races."""
    if match["severity"] != "Error":
        return None
    first = _placed(match["place"]) or Place()
    second, access = Place(), ""
    for line in report.body:
        other = _OTHER.match(line)
        if other is not None:
            second, access = _placed(other["place"]) or Place(), other["access"]
            break
    accesses = [match["access"].lower(), *([access.lower()] if access else [])]
    return Finding(
        category=Category.RACE,
        message=f"{' and '.join(accesses)} of shared memory without a barrier between them",
        file=first.name,
        line=first.line,
        where=_short(first.kernel or second.kernel),
        other_line=second.line,
        detail={"severity": "error"},
    )


def _placed(line: str) -> Place | None:
    """The position that a line names; None for lines that name none, host frames among them."""
    if _HOST.match(line):
        return None
    match = _PLACE.match(line)
    if match is None:
        return None
    kernel = match["kernel"] or match["old_kernel"] or match["bare"] or ""
    return Place(
        kernel, match["file"] or match["old_file"] or "", int(match["line"] or match["old_line"] or 0)
    )


def _nearest(places: Sequence[Place], staged: str) -> Place:
    """The innermost place in the candidate's own file, else the innermost of all."""
    own = [place for place in places if place.name == staged]
    return next(iter(own or places), Place())


def _short(kernel: str) -> str:
    """A kernel's name without its arguments, return type and template arguments."""
    return kernel.partition("(")[0].partition("<")[0].rpartition(" ")[2]
