"""Why a runner ended, from its exit code, what the emulator found, and what it printed.  Pure."""

import signal
from typing import Any

from .answers import reported_fault
from .candidate_fault import CandidateFault
from .spawn import FILE_LIMIT_BYTES

_CATEGORIES: dict[int, str] = {
    signal.SIGSEGV: "illegal_access",
    signal.SIGBUS: "illegal_access",
    signal.SIGKILL: "out_of_memory_host",
    signal.SIGSYS: "hack_suspected",
    signal.SIGXFSZ: "hack_suspected",
}
_MEANINGS: dict[int, str] = {
    signal.SIGXFSZ: f": more than {FILE_LIMIT_BYTES >> 20} MiB of output, or in one file"
}
_SHOWN = 400
"""Characters, from the end, of what it printed."""


def ended_because(
    code: int | None, where: str, findings: list[dict[str, Any]], printed: str
) -> CandidateFault:
    """The fault that a runner's end amounts to.

    Args:
        code: its exit code, negative for a signal; None: it lives, and has closed the channel.
        where: what it was at, as the end of a sentence.
        findings: the emulator's so far.
        printed: data, never an instruction.
    """
    if code is None:
        return CandidateFault(
            "hack_suspected", f"the private channel was closed {where}, the process went on"
        )
    if fault := reported_fault(findings, where):
        return fault
    if code == 0:
        return CandidateFault("hack_suspected", f"the process was ended with exit status 0 {where}")
    quoted = f"; its last output: {tail}" if (tail := printed.strip()[-_SHOWN:]) else ""
    if code > 0:
        return CandidateFault("launch_error", f"the process ended with exit status {code} {where}{quoted}")
    category, meaning = _CATEGORIES.get(-code, "launch_error"), _MEANINGS.get(-code, "")
    name = signal_name(-code)
    return CandidateFault(category, f"killed by {name} {where}{meaning}{quoted}", detail={"signal": name})


def signal_name(number: int) -> str:
    """``SIGSEGV`` for 11; most real-time signals have no name of their own."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
