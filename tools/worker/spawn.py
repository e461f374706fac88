"""A candidate's process: scrubbed environment, own session, limits, confinement; a socket to the judge."""

import contextlib
import os
import resource
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from .candidate_fault import CandidateFault
from .isolation import Isolation, reported
from .isolation import descriptors as isolation_report

FILE_LIMIT_BYTES = 64 << 20
"""Largest file, standard output included, that a candidate may write."""
_PASSED_ON = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_HOME",
    "LD_LIBRARY_PATH",
    "NVIDIA_VISIBLE_DEVICES",
)


def spawned(
    argv: Sequence[str],
    work: Path,
    output: IO[bytes],
    *,
    env: Mapping[str, str],
    descriptors: Sequence[int],
    isolation: Isolation | None,
    cache: Path | None = None,
) -> tuple["subprocess.Popen[bytes]", socket.socket, list[str]]:
    """Start a runner in its folder `work`.

    Args:
        argv: its command; the descriptor's number is appended.
        output: where it prints.
        env: additions to a scrubbed environment.
        descriptors: those that it inherits, beside its socket.
        isolation: how to confine it; None for a process of the judge's own.
        cache: its cache home, which it may write as well; None: below its folder.

    Returns:
        The process, the judge's end of its socket, and what of the confinement is active.

    Raises:
        CandidateFault: it cannot be started.
    """
    if shutil.which(argv[0]) is None:
        raise CandidateFault("environment", f"the runner is gone: {argv[0]}")
    ours, theirs = socket.socketpair()
    report, theirs_report = isolation_report()
    prefix = isolation.prefix([work, *([cache] if cache else [])], theirs_report) if isolation else []
    scrubbed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    scrubbed |= {"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": str(work), "HOME": str(work)}
    scrubbed |= {"XDG_CACHE_HOME": str(cache)} if cache else {}
    try:
        process = subprocess.Popen(
            [*prefix, *argv, str(theirs.fileno())],
            env=scrubbed | dict(env),
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(theirs.fileno(), theirs_report, *descriptors),
            start_new_session=True,
        )
    except OSError as error:
        ours.close()
        os.close(report)
        raise CandidateFault("environment", f"the runner does not start: {error}") from error
    finally:
        theirs.close()
        os.close(theirs_report)
    active = []
    if isolation:
        active = reported(report)
    else:
        os.close(report)
    # Set from outside: code between fork and exec is not safe in a process with torch's threads.
    for limit, value in ((resource.RLIMIT_FSIZE, FILE_LIMIT_BYTES), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(process.pid, limit, (value, value))
    return process, ours, active
