"""Why a judge's process ended, from its exit code and what the user's code printed, or as it says.  Pure."""

import re
import signal
from collections.abc import Mapping
from pathlib import Path

from stitch_tui.tools.errors import (
    DeviceLost,
    EnvironmentFault,
    JudgeKilled,
    ReferenceFault,
    StitchError,
    UsageError,
)
from stitch_tui.tools.worker.runner_end import signal_name

_ERRORS: dict[str, type[StitchError]] = {
    "reference": ReferenceFault,
    "memory": ReferenceFault,
    "environment": EnvironmentFault,
    "device": DeviceLost,
    "usage": UsageError,
}
_FRAME = re.compile(r'File "([^"]+)", line (\d+) in')


def ended_because(
    code: int | None, log: str, project: Path, *, during: str, held: int, memory_limit: int
) -> StitchError:
    """The fault that a judge's end amounts to.

    Args:
        code: its exit code, negative for a signal; None: it lives, and has closed the connection.
        log: the end of what it printed, the stack of a crash among it.
        project: the user's files lie below it.
        during: the stage that it was in; empty before the first.
        held: bytes for which it was ended, with its children; 0: it was not.
        memory_limit: bytes that they were allowed.
    """
    where, why = frame(log, project), last_line(log)
    if held:
        return ReferenceFault(
            "the reference is too large for memory",
            where=where,
            why=f"it held {held / 2**30:.1f} GiB of {memory_limit / 2**30:.1f} allowed",
            advice="smaller inputs in get_inputs(), or a machine with more memory",
        )
    if code is None:
        return ReferenceFault("the reference closed the judge's connection", where=where)
    if code >= 0:
        what = f"the reference ended the process (exit code {code})"
        return ReferenceFault(f"{what} during {during}" if during else what, where=where, why=why)
    if -code == signal.SIGKILL:
        return JudgeKilled("the reference was killed", why="out of memory, most likely")
    return ReferenceFault(f"the reference crashed ({signal_name(-code)})", where=where)


def frame(log: str, project: Path) -> str:
    """``file:line`` of the innermost of the user's frames in the last stack that the worker printed."""
    for filename, line in _FRAME.findall(log.rpartition("most recent call first")[2]):
        path = Path(filename)
        if path.is_relative_to(project) and "site-packages" not in path.parts:
            return f"{path.relative_to(project)}:{line}"
    return ""


def last_line(text: str) -> str:
    """The last line with anything in it, cut; empty where there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def error_of(data: Mapping[str, str]) -> StitchError:
    """An error as the judge names it."""
    kind = _ERRORS.get(data["kind"], StitchError)
    return kind(data["what"], where=data["where"], why=data["why"], advice=data["advice"])
