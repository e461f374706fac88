"""A judge's process as it is started: the user's interpreter in the user's project."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from stitch_tui.tools import scratch
from stitch_tui.tools.errors import EnvironmentFault

BOOT = Path(__file__).parent / "worker" / "boot.py"


async def started(
    python: str, project: Path, environment: Mapping[str, str], descriptor: int
) -> asyncio.subprocess.Process:
    """Start it in a session of its own; what it prints comes through a pipe.

    Args:
        descriptor: its end of the socket on which it is called.

    Raises:
        EnvironmentFault: there is no such interpreter, or no such project.
    """
    try:
        return await asyncio.create_subprocess_exec(
            python,
            "-P",
            "-u",
            str(BOOT),
            "judge",
            str(descriptor),
            cwd=project,
            env={**environment, scratch.VARIABLE: str(scratch.own())},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            pass_fds=(descriptor,),
            start_new_session=True,
        )
    except (FileNotFoundError, PermissionError, NotADirectoryError) as error:
        missing = project if not project.is_dir() else python
        raise EnvironmentFault(
            "the reference's interpreter cannot be started",
            where=str(missing),
            why=error.strerror or "",
            advice="set [reference] python to a Python 3.11 or later with torch",
        ) from error
