"""What became of a process that a test started."""

import os
import select


def ended(pid: int) -> bool:
    """Whether the process has ended or does so at once: a signal takes a moment to arrive."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 10)[0])
    finally:
        os.close(descriptor)
