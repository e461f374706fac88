"""TOML that somebody else wrote: whatever is wrong with it is one error."""

import tomllib
from typing import Any


def loads(text: str) -> dict[str, Any]:
    """The data; a byte order mark ahead of it is left out.

    Raises:
        TOMLDecodeError: it is no TOML, has a number that Python does not read, or is nested too deeply.
    """
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise tomllib.TOMLDecodeError(why) from error
