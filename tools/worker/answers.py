"""What a runner answers to a call or a burst, parsed; text that no runner writes is evidence."""

import json
import secrets
from dataclasses import dataclass, field
from typing import Any

from .candidate_fault import CandidateFault


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
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise CandidateFault("hack_suspected", "a finding on the private channel that no runner writes")
    return value


def reported_fault(findings: list[dict[str, Any]], where: str) -> CandidateFault | None:
    """The emulator's errors as one fault; the engine finds their lines and their category."""
    if not any(finding.get("severity") == "error" for finding in findings):
        return None
    first = next(finding for finding in findings if finding.get("severity") == "error")
    category = str(first.get("category") or "illegal_access")
    return CandidateFault(category, str(first.get("msg", "")), where=where, raw=findings)


def times_of(text: str, nonce: str) -> list[float]:
    words = text.split()
    if words[:1] != [nonce]:
        raise CandidateFault("hack_suspected", "times were forged on the private channel")
    return [float(word) for word in words[1:]]


def watched_of(text: str, nonce: str) -> dict[str, Any]:
    """The fields of `Done` that the line ``busy`` fills."""
    match text.split():
        case [known, "-", *why] if known == nonce:
            return {"unwatched": " ".join(why)}
        case [known, us, pieces] if known == nonce:
            return {"busy": Busy(float(us), int(pieces))}
    raise CandidateFault("hack_suspected", "a record of the device's work was forged on the private channel")


def done_of(
    text: str, nonce: str, wall_us: float, findings: list[dict[str, Any]], times: dict[str, list[float]]
) -> Done:
    words = text.split()
    if len(words) != 6 or not secrets.compare_digest(words[0].encode(), nonce.encode()):
        raise CandidateFault("hack_suspected", "an acknowledgement was forged on the private channel")
    rc, cuda_error, event, workspace, bound = words[1:]
    numbers = (int(rc), int(cuda_error), float(event), int(workspace), int(bound), wall_us)
    return Done(*numbers, findings, times.get("times", []), times.get("host", []))
