"""Why a runner's process ended, by its exit status: a signal, or an exit of the candidate's making.  Pure."""

import signal

from .candidate_fault import CandidateFault
from .spawn import FILE_LIMIT_BYTES

_CATEGORIES = {
    signal.SIGSEGV: "illegal_access",
    signal.SIGBUS: "illegal_access",
    signal.SIGKILL: "out_of_memory_host",
    signal.SIGSYS: "hack_suspected",
    signal.SIGXFSZ: "hack_suspected",
}
_MEANINGS = {signal.SIGXFSZ: f": more than {FILE_LIMIT_BYTES >> 20} MiB of output, or in one file"}


def ended_with(code: int, where: str, printed: str) -> CandidateFault:
    """The fault that an unasked end amounts to.

    Args:
        code: exit status, negative for a signal.
        where: what the runner was asked for last, in words.
        printed: by the candidate; its end is quoted.
    """
    tail = printed.strip()[-400:]
    quoted = f"; its last output: {tail}" if tail else ""
    if code < 0:
        sent = signal.Signals(-code)
        message = f"killed by {sent.name} {where}{_MEANINGS.get(sent, '')}{quoted}"
        return CandidateFault(_CATEGORIES.get(sent, "launch_error"), message, detail={"signal": sent.name})
    if code == 0:
        return CandidateFault("hack_suspected", f"the process was ended with exit status 0 {where}")
    return CandidateFault("launch_error", f"the process ended with exit status {code} {where}{quoted}")
