"""Replace a file in one step: nobody ever sees it half written."""

import os
import secrets
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to `path`; an existing file keeps its mode, a symbolic link is itself replaced.

    Raises:
        OSError: the folder cannot be written; what was there is as it was.
    """
    temporary = path.with_name(f".stitch-{secrets.token_hex(8)}")
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
