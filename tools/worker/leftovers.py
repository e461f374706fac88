"""What a candidate left running after a call had returned: processes and threads, from ``/proc``."""

import contextlib
from pathlib import Path

EXPECTED = ("torch/_inductor", "compile_worker")
"""Parts of the command lines of torch.compile's own worker processes."""


def threads(pid: int) -> int:
    """How many threads a process has; 0 when it is gone."""
    with contextlib.suppress(OSError):
        return len(list(Path(f"/proc/{pid}/task").iterdir()))
    return 0


def children(pid: int) -> list[str]:
    """Command lines of the processes that `pid` started and that still run, torch's own left out."""
    found = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [_command(int(child)) for child in listed.read_text().split()]
    return [line for line in found if line and not any(part in line for part in EXPECTED)]


def _command(pid: int) -> str:
    """The command line; empty for a process that has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return ""
