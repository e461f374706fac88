"""Replace a file in one step: nobody ever sees it half written."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stitch_tui.tools.errors import EnvironmentFault


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to `path`; an existing file keeps its mode, a symbolic link is itself replaced.

    Raises:
        OSError: the folder cannot be written; what was there is as it was.
    """
    temporary = path.with_name(f".stitch-{os.urandom(8).hex()}")
    try:
        with temporary.open("xb") as out:
            if path.is_file() and not path.is_symlink():
                os.fchmod(out.fileno(), path.stat().st_mode & 0o777)
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def writing(path: Path, what: str) -> Iterator[None]:
    """Turn a refused write into an error that names the path.

    Raises:
        EnvironmentFault: `what`, at `path`, for the system's reason.
    """
    try:
        yield
    except OSError as error:
        raise EnvironmentFault(
            what,
            where=str(path),
            why=error.strerror or str(error),
            advice="move away what is there, make the project folder writable, or free some space",
        ) from error
