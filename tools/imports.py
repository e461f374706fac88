"""What a candidate's object code calls: no macro, pasted token or assembler label hides a name from it."""

from collections.abc import Iterable
from pathlib import Path

from stitch_tui.tools import process
from stitch_tui.tools.screen import FORBIDDEN_CALLS
from stitch_tui.tools.verdict import Category, Finding

INTERPRETER = ("Py", "_Py")
"""Beginnings of the C API of the Python that runs a candidate."""
THREAD = "_ZNSt6thread15_M_start_thread"
"""What ``std::thread`` and ``std::async`` come to, in libstdc++."""

_FORBIDDEN = {name: reason for reason, names in FORBIDDEN_CALLS.items() for name in names.split()}


async def forbidden_imports(objects: Iterable[Path], nm: Path) -> tuple[Finding, ...]:
    """A finding for each function that candidates have no business with, by the compiler's object files.

    Args:
        objects: as compiled from the candidate alone, not linked: libraries have business of their own.
    """
    command = [str(nm), "--undefined-only", "--format=posix", *map(str, objects)]
    if len(command) == 3:
        return ()
    done = await process.run(command, timeout=60)
    names = dict.fromkeys(line.split()[0].partition("@")[0] for line in done.stdout.splitlines() if line)
    found = ((name, reason) for name in names if (reason := reason_against(name)))
    return tuple(
        Finding(
            category=Category.HACK_SUSPECTED,
            message=f"{name} {reason}, by the object code",
            detail={"severity": "error"},
        )
        for name, reason in found
    )


def reason_against(symbol: str) -> str:
    """Why a candidate may not call it; empty when it may."""
    if symbol.startswith(INTERPRETER):
        return "reaches into the process that runs it"
    if symbol.startswith(THREAD):
        return "starts a thread"
    return _FORBIDDEN.get(symbol.removesuffix("64"), "")
