"""Every error that stitch shows a person, and the exit codes they map to.

::

    StitchError
    ├── UsageError        2  a wrong command, setting or file of the user's
    │   └── ReferenceFault   the reference cannot be used as it is
    ├── EnvironmentFault  3  a tool, driver, device or permission is missing
    ├── EndpointError     4  the model endpoint, authentication or network
    ├── LimitReached      5  time, iterations, tokens or money
    ├── Denied            6  a needed action was denied
    └── Unproven          7  correctness could not be established
"""

from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """What a script learns from ``stitch``; `decisive` picks one when several apply."""

    GOAL_MET = 0
    GOAL_NOT_MET = 1
    USAGE = 2
    ENVIRONMENT = 3
    ENDPOINT = 4
    LIMIT = 5
    DENIED = 6
    UNPROVEN = 7
    HANGUP = 129
    INTERRUPT = 130
    TERMINATED = 143


_PRECEDENCE = (
    ExitCode.HANGUP,
    ExitCode.INTERRUPT,
    ExitCode.TERMINATED,
    ExitCode.USAGE,
    ExitCode.ENVIRONMENT,
    ExitCode.ENDPOINT,
    ExitCode.DENIED,
    ExitCode.UNPROVEN,
    ExitCode.LIMIT,
    ExitCode.GOAL_NOT_MET,
    ExitCode.GOAL_MET,
)


def decisive(codes: Iterable[ExitCode]) -> ExitCode:
    """The exit code that outranks the others; `GOAL_NOT_MET` when there is none, never 0 by default."""
    return min(codes, key=_PRECEDENCE.index, default=ExitCode.GOAL_NOT_MET)


class StitchError(Exception):
    """One clear sentence for a person: what failed, where, why, and what to do next.

    Args:
        what: what failed, without a full stop.
        where: file:line, setting, URL or empty.
        why: the cause as far as it is known, or empty.
        advice: the next step, or empty.
    """

    exit_code = ExitCode.GOAL_NOT_MET

    def __init__(self, what: str, *, where: str = "", why: str = "", advice: str = "") -> None:
        super().__init__(what)
        self.what, self.where, self.why, self.advice = what, where, why, advice

    def __str__(self) -> str:
        """One line: ``where: what: why (advice)``, the parts that are there."""
        line = ": ".join(part for part in (self.where, self.what, self.why) if part)
        return f"{line} ({self.advice})" if self.advice else line


class UsageError(StitchError):
    """A wrong command, setting or file of the user's."""

    exit_code = ExitCode.USAGE


class ReferenceFault(UsageError):
    """The reference cannot be used as it is: missing, not Python, raises, hangs, returns no tensor."""


class JudgeKilled(ReferenceFault):
    """Somebody killed the judge, or the kernel did for want of memory: another may do the same work."""


class EnvironmentFault(StitchError):
    """A tool, driver, device or permission is missing.  Never counts against a candidate."""

    exit_code = ExitCode.ENVIRONMENT


class DeviceLost(StitchError):
    """A judge's context on the GPU is gone after a sticky error: another judge may do the same work."""

    exit_code = ExitCode.ENVIRONMENT


class EndpointError(StitchError):
    """The model endpoint, authentication or network failed."""

    exit_code = ExitCode.ENDPOINT


class LimitReached(StitchError):
    """A limit on time, iterations, tokens or money ended the run."""

    exit_code = ExitCode.LIMIT


class Denied(StitchError):
    """A needed action was denied by a person or a deny rule."""

    exit_code = ExitCode.DENIED


class Unproven(StitchError):
    """Correctness could not be established."""

    exit_code = ExitCode.UNPROVEN
