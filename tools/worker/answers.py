"""What a runner answers to a call or a burst, parsed; text that no runner writes is evidence."""

import json
import math
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .abi import IN_REFERENCE
from .candidate_fault import CATEGORIES, CandidateFault


@dataclass(frozen=True)
class Busy:
    """How long the device worked, by CUPTI."""

    us: float
    pieces: int
    """Kernels, copies and fills."""


@dataclass(frozen=True)
class Done:
    """A runner's acknowledgement of one call."""

    rc: int
    cuda_error: int
    event_us: float
    """Of a call; of a burst, for how long the device worked on after the call's stream had ended."""
    workspace_bytes: int
    bound_bytes: int
    wall_us: float
    """Between sending the call and its acknowledgement, seen from the judge."""
    findings: list[dict[str, Any]] = field(default_factory=list)
    """Warnings of the emulator; errors are raised."""
    times_us: list[float] = field(default_factory=list)
    """Event time of each launch of a burst."""
    host_us: list[float] = field(default_factory=list)
    """How long the host was at each launch of a burst."""
    busy: Busy | None = None
    """Of a watched burst."""
    unwatched: str = ""
    """Why CUPTI did not record it."""


def finding_of(text: str) -> dict[str, Any]:
    """What the emulator or a module's runner found, in the fields that these write."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not all(_is_written(*field) for field in value.items()):
        raise CandidateFault("hack_suspected", "a finding on the private channel that no runner writes")
    return value


def _is_written(name: str, value: object) -> bool:
    """Does a runner write such a field of a finding?"""
    if name in ("line", "line2"):
        return type(value) is int
    if not isinstance(value, str):
        return False
    if name in ("pc", "pc2"):
        return re.fullmatch(r"0x[0-9a-f]{1,16}", value) is not None
    if name == "category":
        return is_category(value)
    return name in ("kind", "severity", "file", "where", "msg")


def is_category(text: str) -> bool:
    """Does a runner say this of a candidate?"""
    return text in CATEGORIES or text == IN_REFERENCE


def reported_fault(findings: list[dict[str, Any]], where: str) -> CandidateFault | None:
    """The emulator's errors as one fault; the engine finds their lines and their category."""
    if not any(finding.get("severity") == "error" for finding in findings):
        return None
    first = next(finding for finding in findings if finding.get("severity") == "error")
    category = str(first.get("category") or "illegal_access")
    return CandidateFault(category, str(first.get("msg", "")), where=where, raw=findings)


def times_of(text: str, nonce: str) -> list[float]:
    """Microseconds of each launch of a burst, of the device or of the host."""
    said, *words = text.split() or [""]
    with _forgery("times were forged on the private channel"):
        _require(said == nonce)
        return [float(word) for word in words]


def watched_of(text: str, nonce: str) -> dict[str, Any]:
    """The fields of `Done` that the line ``busy`` fills."""
    with _forgery("a record of the device's work was forged on the private channel"):
        said, *words = text.split()
        _require(said == nonce)
        if words[0] == "-":
            return {"unwatched": " ".join(words[1:])}
        us, pieces = words
        return {"busy": Busy(_finite(us), int(pieces))}


def done_of(
    text: str, nonce: str, wall_us: float, findings: list[dict[str, Any]], times: dict[str, list[float]]
) -> Done:
    """The acknowledgement of one request, with what was said before it."""
    with _forgery("an acknowledgement was forged on the private channel"):
        said, rc, cuda_error, event, workspace, bound = text.split()
        _require(secrets.compare_digest(said.encode(), nonce.encode()))
        numbers = (int(rc), int(cuda_error), _finite(event), int(workspace), int(bound), wall_us)
    return Done(*numbers, findings, times.get("times", []), times.get("host", []))


@contextmanager
def _forgery(what: str) -> Iterator[None]:
    """Around the reading of a line: one that no runner writes is evidence.

    Raises:
        CandidateFault: it cannot be read, or is no answer to what was asked.
    """
    try:
        yield
    except (ValueError, IndexError) as error:
        raise CandidateFault("hack_suspected", what) from error


def _require(true: bool) -> None:
    if not true:
        raise ValueError


def _finite(word: str) -> float:
    number = float(word)
    _require(math.isfinite(number))
    return number
